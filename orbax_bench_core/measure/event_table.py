"""Table of `jax.monitoring` events: the metric that each event of Orbax and JAX gives."""

import enum
from collections.abc import Iterator

from orbax_bench_core.measure.definition import Aggregate, Better, Metric


class _Type(enum.Enum):
    """Unit of a metric, which values are better, and what becomes of those of one block."""

    def __init__(self, unit: str, better: Better, aggregate: Aggregate) -> None:
        self.unit, self.better, self.aggregate = unit, better, aggregate

    SPENT = ("s", "lower", "sum")
    ELAPSED = ("s", "none", "sum")
    SAVED = ("s", "higher", "sum")
    RATE = ("GiB/s", "higher", "last")
    SIZE = ("GiB", "none", "sum")
    BYTES = ("bytes", "none", "sum")
    COUNT = ("count", "none", "sum")
    HITS = ("count", "higher", "sum")
    MISSES = ("count", "lower", "sum")
    RATIO = ("ratio", "higher", "last")


def _group(
    namespace: str, prefix: str, kind: _Type, *rows: tuple[str, str, str]
) -> Iterator[Metric]:
    """Yields the metrics of events, given by name, event without the prefix, and description."""
    for name, event, text in rows:
        yield Metric(
            name=f"{namespace}/{name}",
            unit=kind.unit,
            better=kind.better,
            description=text,
            collector="jax_monitoring",
            event=prefix + event,
            aggregate=kind.aggregate,
        )


# fmt: off
_SAVE = (
    *_group(
        "2_save_breakdown", "/jax/orbax/write/", _Type.SPENT,
        ("blocking_s", "blocking_duration_secs",
         "Blocking part of a synchronous save; v1 `save` waits for the rest as well"),
        ("total_s", "total_duration_secs", "Synchronous save, to the committed checkpoint"),
        ("async_blocking_s", "async/blocking_duration_secs", "blocking_async_s by its new name"),
        ("async_total_s", "async/total_duration_secs", "total_async_s by its new name"),
        ("directory_creation_s", "directory_creation_secs", "Temporary directories are made"),
        ("async_directory_creation_s", "async_directory_creation_secs",
         "Temporary directories are made asynchronously"),
        ("blocking_directory_creation_s", "blocking_directory_creation_secs",
         "The caller waits for temporary directories"),
        ("background_directory_creation_s", "background_directory_creation_secs",
         "Temporary directories are made in the background"),
        ("checkpoint_start_sync_s", "checkpoint_start_sync_duration_secs",
         "Processes wait for each other before a save"),
        ("blocking_sync_item_s", "blocking_sync_item_duration_secs",
         "The caller waits for items that save synchronously"),
        ("blocking_d2h_s", "blocking_d2h_duration_secs",
         "Serialization is set going, with the copies from device to host"),
        ("blocking_tree_map_s", "blocking_tree_map_duration_secs", "Save requests are prepared"),
        ("blocking_val_s", "blocking_val_duration_secs", "The checkpoint manager validates a save"),
        ("blocking_wait_prev_s", "blocking_wait_prev_duration_secs",
         "Wait for the previous save, also one that the caller asked for before this save"),
        ("background_s", "background_duration_secs", "Background thread of a save, from its start"),
        ("background_finalize_s", "background_finalize_secs", "Commit in the background"),
        ("background_item_finalize_s", "background_item_finalize_secs", "One item is finalized"),
        ("background_meta_write_s", "background_meta_write_secs", "Tree metadata is written"),
        ("background_ocdbt_merge_s", "background_ocdbt_merge_secs",
         "OCDBT databases of the processes are merged, with validation"),
        ("background_ts_s", "background_ts_duration_secs", "Background writes of array data"),
        ("finalize_s", "finalize_duration_secs", "A synchronous save finalizes and commits"),
        ("merge_ocdbt_per_process_files_s", "merge_ocdbt_per_process_files_secs",
         "OCDBT databases of the processes are merged, the merge alone"),
        ("worker_io_s", "worker/total_duration_secs", "This host writes its arrays"),
    ),
    *_group(
        "2_save_breakdown", "/jax/checkpoint/write/", _Type.SPENT,
        ("blocking_async_s", "async/blocking_duration_secs",
         "Blocking part of an async save, without the removal of old steps"),
        ("total_async_s", "async/total_duration_secs", "Async save, to the committed checkpoint"),
        ("metadata_write_s", "async/metadata_write_duration_secs", "Tree metadata is written"),
        ("commit_s", "async/commit_duration_sec", "Background writes of array data"),
        ("thread_duration_s", "async/thread_duration_sec", "Background thread of a save"),
        ("ocdbt_merge_s", "async/ocdbt_merge_duration_secs", "OCDBT databases are merged"),
        ("wait_for_prev_s", "wait_for_prev_duration_secs",
         "The checkpoint manager waits for the previous save"),
    ),
    *_group(
        "2_save_breakdown", "/jax/checkpoint/write/", _Type.ELAPSED,
        ("duration_since_last_save_s", "duration_since_last_checkpoint_secs",
         "From the start of the last save, or of the process, to the start of this one"),
    ),
    *_group(
        "2_save_breakdown", "/orbax-bench/", _Type.ELAPSED,
        ("metadata_directory_wait_s", "metadata_directory_wait_secs",
         "Of worker_io_s: the primary host makes a directory for metadata, the others look for it"),
        ("directories_wait_s", "directories_wait_secs",
         "Of commit_s: a thread that writes waits for directories of the primary host"),
    ),
    *_group(
        "2_save_breakdown", "/jax/checkpoint/write/", _Type.COUNT,
        ("commit_future_count", "async/commit_future_count", "Writes that a commit waited for"),
    ),
    *_group(
        "2_save_breakdown", "/jax/orbax/write/", _Type.COUNT,
        ("start_count", "start", "Synchronous saves that started"),
        ("start_async_count", "async/start", "Async saves that started"),
        ("success_count", "success", "Saves that were committed"),
    ),
)

_LOAD = (
    *_group(
        "3_load_breakdown", "/jax/orbax/read/", _Type.SPENT,
        ("blocking_s", "blocking_duration_secs",
         "Preparation of a synchronous load; the caller waits for all of it, total_s"),
        ("blocking_async_s", "async/blocking_duration_secs", "Preparation of an async load"),
        ("total_s", "total_duration_secs", "Synchronous load"),
        ("total_async_s", "async/total_duration_secs", "Async load, to its end"),
        ("worker_io_s", "worker/total_duration_secs", "This host reads its arrays"),
    ),
    *_group(
        "3_load_breakdown", "/jax/checkpoint/read/", _Type.SPENT,
        ("primary_deserialization_s", "primary_replica_deserialization_duration_secs",
         "The primary replica reads its arrays"),
        ("broadcast_s", "broadcast_duration_secs", "Arrays go to the other replicas"),
    ),
    *_group(
        "3_load_breakdown", "/orbax/emergency/checkpoint/read/", _Type.SPENT,
        ("emergency_broadcast_s", "broadcast_duration_secs",
         "Emergency manager: arrays go to the other slices"),
        ("emergency_transfer_s", "transfer_global_shard_duration_secs",
         "Emergency manager: shards go to the hosts that need them"),
    ),
    *_group(
        "3_load_breakdown", "/jax/orbax/read/", _Type.COUNT,
        ("start_count", "start", "Synchronous loads that started"),
        ("start_async_count", "async/start", "Async loads that started"),
        ("success_count", "success", "Loads that ended well"),
    ),
    *_group(
        "3_load_breakdown", "/jax/orbax/checkpoint/deserialize/", _Type.COUNT,
        ("shard_shape_changed_count", "shard_shape_changed", "Arrays loaded into other shards"),
    ),
)

_DATA = (
    *_group(
        "4_throughput", "/jax/orbax/", _Type.RATE,
        ("save_blocking_gbps", "write/blocking_gbytes_per_sec", "Tree size / blocking time"),
        ("save_total_gbps", "write/gbytes_per_sec", "Tree size / time of the whole save"),
        ("save_per_host_gbps", "write/worker/io/requested/throughput/gbytes_per_sec",
         "Array bytes written by this host / time"),
        ("save_raw_per_host_gbps", "write/worker/io/raw/throughput/gbytes_per_sec",
         "Bytes that reached storage from this host / time"),
        ("load_per_host_gbps", "read/worker/io/requested/throughput/gbytes_per_sec",
         "Array bytes read by this host / time"),
        ("load_raw_per_host_gbps", "read/worker/io/raw/throughput/gbytes_per_sec",
         "Bytes that storage gave this host / time"),
    ),
    *_group(
        "4_throughput", "/jax/checkpoint/", _Type.RATE,
        ("load_total_gbps", "read/gbytes_per_sec", "Tree size / time of the whole load"),
    ),
    *_group(
        "5_inventory", "/jax/orbax/", _Type.SIZE,
        ("save_total_gb", "write/gbytes", "Tree size"),
        ("save_compressed_gb", "write/compressed_gbytes", "Size on storage; older Orbax only"),
        ("save_requested_gb", "write/worker/io/requested/gbytes", "Array bytes of this host"),
        ("save_raw_gb", "write/worker/io/raw/gbytes", "Bytes this host sent to storage"),
        ("replicated_array_gb", "write/replicated_array_gb", "Global size of replicated arrays"),
        ("sharded_array_gb", "write/sharded_array_gb", "Global size of arrays held once"),
        ("load_requested_gb", "read/worker/io/requested/gbytes", "Array bytes of this host"),
        ("load_raw_gb", "read/worker/io/raw/gbytes", "Bytes this host got from storage"),
    ),
    *_group(
        "5_inventory", "/jax/checkpoint/", _Type.SIZE,
        ("load_total_gb", "read/gbytes", "Tree size"),
    ),
    *_group(
        "5_inventory", "/jax/orbax/", _Type.RATIO,
        ("save_compression_ratio", "write/worker/io/compression_ratio", "Array / stored bytes"),
        ("load_compression_ratio", "read/worker/io/compression_ratio", "Array / stored bytes"),
    ),
    *_group(
        "5_inventory", "/jax/orbax/", _Type.COUNT,
        ("save_storage_type_count", "write/storage_type", "Saves whose storage type was told"),
        ("load_storage_type_count", "read/storage_type", "Loads whose storage type was told"),
    ),
    *_group(
        "6_io", "/jax/orbax/read/safetensors/", _Type.BYTES,
        ("file_bytes_read_per_host", "bytes_read", "Bytes read from safetensors files"),
    ),
    *_group(
        "6_io", "/jax/orbax/read/safetensors/", _Type.COUNT,
        ("file_reads_per_host_count", "num_reads", "Coalesced ranges read from safetensors files"),
        ("storage_reads_per_host_count", "storage_reads", "Requests to storage, >= file reads"),
    ),
)

_REST = (
    *_group(
        "7_overhead", "/jax/checkpoint/", _Type.SPENT,
        ("sync_global_devices_s", "sync_global_devices_duration_sec", "Barriers of all processes"),
        ("get_old_steps_s", "write/get_old_steps_duration_secs", "Old steps are chosen"),
        ("remove_steps_s", "write/remove_steps_duration_secs", "Old steps are removed"),
        ("load_all_step_metadata_s", "read/load_all_step_metadata_duration_secs",
         "The metadata of all steps is read"),
    ),
    *_group(
        "7_overhead", "/jax/orbax/checkpoint_manager/", _Type.SPENT,
        ("delete_threaded_s", "threaded_checkpoint_deleter/duration", "A step is deleted, aside"),
        ("delete_standard_s", "standard_checkpoint_deleter/duration", "A step is deleted"),
    ),
    *_group(
        "7_overhead", "/jax/orbax/checkpoint_manager/", _Type.ELAPSED,
        ("time_between_consecutive_saves_s", "time_between_consecutive_saves_secs",
         "From the end of the last save to the next; negative when they overlap"),
    ),
    *_group(
        "7_overhead", "/jax/", _Type.COUNT,
        ("old_steps_examined_count", "checkpoint/write/old_steps_examined_count",
         "Steps looked at for removal"),
        ("array_handler_init_count", "orbax/array_handler/init", "Array handlers made"),
        ("pytree_handler_init_ocdbt_count", "orbax/pytree_checkpoint_handler/init/ocdbt",
         "Tree handlers that use OCDBT made"),
        ("checkpointer_init_count", "orbax/checkpointer/init", "Checkpointers made"),
        ("async_checkpointer_init_count", "orbax/async_checkpointer/init",
         "Async checkpointers made"),
        ("checkpoint_manager_init_count", "orbax/checkpoint_manager/init",
         "Checkpoint managers made"),
    ),
    *_group(
        "8_jax", "/jax/compilation_cache/", _Type.SPENT,
        ("cache_retrieval_s", "cache_retrieval_time_sec", "Executables come from the cache"),
    ),
    *_group(
        "8_jax", "/jax/compilation_cache/", _Type.SAVED,
        ("compile_time_saved_s", "compile_time_saved_sec",
         "Compilation that cache hits spared, less their retrieval; may be negative"),
    ),
    *_group(
        "8_jax", "/jax/core/compile/", _Type.SPENT,
        ("jaxpr_trace_s", "jaxpr_trace_duration", "Tracing to jaxprs; inner traces count twice"),
        ("jaxpr_to_mlir_module_s", "jaxpr_to_mlir_module_duration", "Lowering to MLIR"),
        ("backend_compile_s", "backend_compile_duration", "XLA compiles, or asks the cache"),
    ),
    *_group(
        "8_jax", "/jax/compilation_cache/", _Type.HITS,
        ("cache_hits_count", "cache_hits", "Executables found in the compilation cache"),
    ),
    *_group(
        "8_jax", "/jax/compilation_cache/", _Type.MISSES,
        ("cache_misses_count", "cache_misses", "Executables that the cache did not have"),
    ),
    *_group(
        "8_jax", "/jax/compilation_cache/", _Type.COUNT,
        ("compile_requests_use_cache_count", "compile_requests_use_cache",
         "Compilations that may use the cache"),
        ("tasks_using_cache_count", "tasks_using_cache", "Tasks that use the cache"),
        ("task_disabled_cache_count", "task_disabled_cache", "Tasks that switched the cache off"),
    ),
)
# fmt: on

METRICS: tuple[Metric, ...] = (*_SAVE, *_LOAD, *_DATA, *_REST)
BY_EVENT = {metric.event: metric for metric in METRICS}
