"""Metrics of `jax.monitoring` events: those of a table, and names for all others."""

import functools
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from orbax_bench_core.measure.definition import Aggregate, Better, Family, Metric

CACHE_HITS = "8_jax/cache_hits_count"
CACHE_MISSES = "8_jax/cache_misses_count"


class _Type(NamedTuple):
    unit: str
    better: Better
    aggregate: Aggregate


_SPENT = _Type("s", "lower", "sum")
_ELAPSED = _Type("s", "none", "sum")
_SAVED = _Type("s", "higher", "sum")
_RATE = _Type("GiB/s", "higher", "last")
_SIZE = _Type("GiB", "none", "sum")
_BYTES = _Type("bytes", "none", "sum")
_COUNT = _Type("count", "none", "sum")
_HITS = _Type("count", "higher", "sum")
_MISSES = _Type("count", "lower", "sum")
_RATIO = _Type("ratio", "higher", "last")

# Tag, event without the group's prefix, what it says.
_Row = tuple[str, str, str]


def _group(namespace: str, prefix: str, kind: _Type, *rows: _Row) -> Iterator[Metric]:
    for name, event, text in rows:
        yield Metric(
            f"{namespace}/{name}", *kind[:2], text, "jax_monitoring", prefix + event, kind.aggregate
        )


# fmt: off
_SAVE = (
    *_group(
        "2_save_breakdown", "/jax/orbax/write/", _SPENT,
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
        "2_save_breakdown", "/jax/checkpoint/write/", _SPENT,
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
        "2_save_breakdown", "/jax/checkpoint/write/", _ELAPSED,
        ("duration_since_last_save_s", "duration_since_last_checkpoint_secs",
         "From the start of the last save, or of the process, to the start of this one"),
    ),
    *_group(
        "2_save_breakdown", "/jax/checkpoint/write/", _COUNT,
        ("commit_future_count", "async/commit_future_count", "Writes that a commit waited for"),
    ),
    *_group(
        "2_save_breakdown", "/jax/orbax/write/", _COUNT,
        ("start_count", "start", "Synchronous saves that started"),
        ("start_async_count", "async/start", "Async saves that started"),
        ("success_count", "success", "Saves that were committed"),
    ),
)

_LOAD = (
    *_group(
        "3_load_breakdown", "/jax/orbax/read/", _SPENT,
        ("blocking_s", "blocking_duration_secs",
         "Preparation of a synchronous load; the caller waits for all of it, total_s"),
        ("blocking_async_s", "async/blocking_duration_secs", "Preparation of an async load"),
        ("total_s", "total_duration_secs", "Synchronous load"),
        ("total_async_s", "async/total_duration_secs", "Async load, to its end"),
        ("worker_io_s", "worker/total_duration_secs", "This host reads its arrays"),
    ),
    *_group(
        "3_load_breakdown", "/jax/checkpoint/read/", _SPENT,
        ("primary_deserialization_s", "primary_replica_deserialization_duration_secs",
         "The primary replica reads its arrays"),
        ("broadcast_s", "broadcast_duration_secs", "Arrays go to the other replicas"),
    ),
    *_group(
        "3_load_breakdown", "/orbax/emergency/checkpoint/read/", _SPENT,
        ("emergency_broadcast_s", "broadcast_duration_secs",
         "Emergency manager: arrays go to the other slices"),
        ("emergency_transfer_s", "transfer_global_shard_duration_secs",
         "Emergency manager: shards go to the hosts that need them"),
    ),
    *_group(
        "3_load_breakdown", "/jax/orbax/read/", _COUNT,
        ("start_count", "start", "Synchronous loads that started"),
        ("start_async_count", "async/start", "Async loads that started"),
        ("success_count", "success", "Loads that ended well"),
    ),
    *_group(
        "3_load_breakdown", "/jax/orbax/checkpoint/deserialize/", _COUNT,
        ("shard_shape_changed_count", "shard_shape_changed", "Arrays loaded into other shards"),
    ),
)

_DATA = (
    *_group(
        "4_throughput", "/jax/orbax/", _RATE,
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
        "4_throughput", "/jax/checkpoint/", _RATE,
        ("load_total_gbps", "read/gbytes_per_sec", "Tree size / time of the whole load"),
    ),
    *_group(
        "5_inventory", "/jax/orbax/", _SIZE,
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
        "5_inventory", "/jax/checkpoint/", _SIZE,
        ("load_total_gb", "read/gbytes", "Tree size"),
    ),
    *_group(
        "5_inventory", "/jax/orbax/", _RATIO,
        ("save_compression_ratio", "write/worker/io/compression_ratio", "Array / stored bytes"),
        ("load_compression_ratio", "read/worker/io/compression_ratio", "Array / stored bytes"),
    ),
    *_group(
        "5_inventory", "/jax/orbax/", _COUNT,
        ("save_storage_type_count", "write/storage_type", "Saves whose storage type was told"),
        ("load_storage_type_count", "read/storage_type", "Loads whose storage type was told"),
    ),
    *_group(
        "6_io", "/jax/orbax/read/safetensors/", _BYTES,
        ("file_bytes_read_per_host", "bytes_read", "Bytes read from safetensors files"),
    ),
    *_group(
        "6_io", "/jax/orbax/read/safetensors/", _COUNT,
        ("file_reads_per_host_count", "num_reads", "Coalesced ranges read from safetensors files"),
        ("storage_reads_per_host_count", "storage_reads", "Requests to storage, >= file reads"),
    ),
)

_REST = (
    *_group(
        "7_overhead", "/jax/checkpoint/", _SPENT,
        ("sync_global_devices_s", "sync_global_devices_duration_sec", "Barriers of all processes"),
        ("get_old_steps_s", "write/get_old_steps_duration_secs", "Old steps are chosen"),
        ("remove_steps_s", "write/remove_steps_duration_secs", "Old steps are removed"),
        ("load_all_step_metadata_s", "read/load_all_step_metadata_duration_secs",
         "The metadata of all steps is read"),
    ),
    *_group(
        "7_overhead", "/jax/orbax/checkpoint_manager/", _SPENT,
        ("delete_threaded_s", "threaded_checkpoint_deleter/duration", "A step is deleted, aside"),
        ("delete_standard_s", "standard_checkpoint_deleter/duration", "A step is deleted"),
    ),
    *_group(
        "7_overhead", "/jax/orbax/checkpoint_manager/", _ELAPSED,
        ("time_between_consecutive_saves_s", "time_between_consecutive_saves_secs",
         "From the end of the last save to the next; negative when they overlap"),
    ),
    *_group(
        "7_overhead", "/jax/", _COUNT,
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
        "8_jax", "/jax/compilation_cache/", _SPENT,
        ("cache_retrieval_s", "cache_retrieval_time_sec", "Executables come from the cache"),
    ),
    *_group(
        "8_jax", "/jax/compilation_cache/", _SAVED,
        ("compile_time_saved_s", "compile_time_saved_sec",
         "Compilation that cache hits spared, less their retrieval; may be negative"),
    ),
    *_group(
        "8_jax", "/jax/core/compile/", _SPENT,
        ("jaxpr_trace_s", "jaxpr_trace_duration", "Tracing to jaxprs; inner traces count twice"),
        ("jaxpr_to_mlir_module_s", "jaxpr_to_mlir_module_duration", "Lowering to MLIR"),
        ("backend_compile_s", "backend_compile_duration", "XLA compiles, or asks the cache"),
    ),
    *_group(
        "8_jax", "/jax/compilation_cache/", _HITS,
        ("cache_hits_count", "cache_hits", "Executables found in the compilation cache"),
    ),
    *_group(
        "8_jax", "/jax/compilation_cache/", _MISSES,
        ("cache_misses_count", "cache_misses", "Executables that the cache did not have"),
    ),
    *_group(
        "8_jax", "/jax/compilation_cache/", _COUNT,
        ("compile_requests_use_cache_count", "compile_requests_use_cache",
         "Compilations that may use the cache"),
        ("tasks_using_cache_count", "tasks_using_cache", "Tasks that use the cache"),
        ("task_disabled_cache_count", "task_disabled_cache", "Tasks that switched the cache off"),
    ),
)
# fmt: on

METRICS: tuple[Metric, ...] = (*_SAVE, *_LOAD, *_DATA, *_REST)
BY_EVENT = {metric.event: metric for metric in METRICS}

Kind = Literal["duration", "scalar", "occurrence"]

_PREFIXES = (
    "/jax/orbax/",
    "/jax/checkpoint/",
    "/jax/compilation_cache/",
    "/jax/core/compile/",
    "/orbax/",  # of emergency managers
)
# Moments in epoch milliseconds: no quantity that could be summed, averaged or compared.
_MOMENT = re.compile(r"/(\w+_)?(start|end)_time$")
_DURATION = re.compile(r"(_secs?|duration)$")
_OTHER = "9_other/"
_BY_NAME = {metric.name: metric for metric in METRICS}
_REPEATED = {
    "_count": "How often the event fired",
    "_max": "Largest of the event's readings",
    "_last": "Last of the event's readings",
}
FAMILIES = (
    *(
        Family(
            pattern=f"<metric of an event>{suffix}",
            units="count" if suffix == "_count" else "that of the metric",
            description=f"{meaning}; given when it fired more than once in the block",
            collector="jax_monitoring",
            example=f"2_save_breakdown/blocking_s{suffix}",
        )
        for suffix, meaning in _REPEATED.items()
    ),
    Family(
        pattern=f"{_OTHER}<event without /jax/, with _ for />",
        units="s, GiB/s, bytes/s, GiB or count, as kind and name of the event say, or none",
        description="An event of Orbax or of JAX's compiler that has no home yet",
        collector="jax_monitoring",
        example=f"{_OTHER}orbax_write_new_stage_duration_secs",
    ),
)


def is_metric(kind: Kind, event: str) -> bool:
    """Whether an event belongs to Orbax or to compilation, and carries more than a moment."""
    if not event.startswith(_PREFIXES):
        return False
    # JAX announces each of its durations with a scalar of the same name: when it began.
    announces = kind == "scalar" and event.startswith("/jax/core/")
    return not announces and _MOMENT.search(event) is None


@functools.lru_cache(maxsize=1024)
def metric_of(kind: Kind, event: str) -> Metric:
    """The metric of an event for which `is_metric` holds; under `9_other` without a table entry."""
    # The kind says whether the event, such as `/jax/orbax/write/gbytes`, came with a duration in
    # seconds, with a scalar, or with nothing (then its readings are its occurrences).
    known = BY_EVENT.get(event)
    if known is not None:
        return known
    return _other(_OTHER + event.removeprefix("/jax").strip("/").replace("/", "_"), kind, event)


def event_metric(kind: Kind, event: str) -> Metric | None:
    """The metric of any event; None for one of others, and for a moment."""
    return metric_of(kind, event) if is_metric(kind, event) else None


def resolve(name: str) -> Metric | None:
    """The metric of a name that an event can give, else None."""
    known = _BY_NAME.get(name)
    if known is not None:
        return known
    for suffix, meaning in _REPEATED.items():
        base = resolve(name.removesuffix(suffix)) if name.endswith(suffix) else None
        if base is not None:
            return Metric(
                name=name,
                unit="count" if suffix == "_count" else base.unit,
                better="none" if suffix == "_count" else base.better,
                description=f"{meaning}, when it fired more than once: {base.description}",
                collector=base.collector,
                event=base.event,
            )
    if name.startswith(_OTHER) and name != _OTHER:
        return _other(name, "duration" if _DURATION.search(name) else "scalar", None)
    return None


def _other(name: str, kind: Kind, event: str | None) -> Metric:
    unit, better, aggregate = _guess(name, kind)
    return Metric(
        name=name,
        unit=unit,
        better=better,
        description=f"Event {event or name.removeprefix(_OTHER)}, which has no home yet",
        collector="jax_monitoring",
        event=event,
        aggregate=aggregate,
    )


def _guess(name: str, kind: Kind) -> tuple[str, Better, Aggregate]:
    # Before 0.11.20 Orbax reports rates as if they were durations.
    if name.endswith("gbytes_per_sec"):
        return "GiB/s", "higher", "last"
    if name.endswith("bytes_per_sec"):
        return "bytes/s", "higher", "last"
    if kind == "duration":
        return "s", "lower", "sum"
    if kind == "occurrence" or name.endswith("_count"):
        return "count", "none", "sum"
    if name.endswith(("_gbytes", "_gb")):
        return "GiB", "none", "sum"
    # A scalar of unknown meaning may be a state, which no sum describes.
    return "", "none", "last"
