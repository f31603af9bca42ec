"""From events to metrics and back, and the names that dashboards for Orbax's benchmarks expect."""

import pytest

from orbax_bench_core.measure import events
from orbax_bench_core.measure.events import Kind

EXPECTED = """
/jax/orbax/write/blocking_duration_secs 2_save_breakdown/blocking_s s
/jax/checkpoint/write/async/blocking_duration_secs 2_save_breakdown/blocking_async_s s
/jax/orbax/write/total_duration_secs 2_save_breakdown/total_s s
/jax/checkpoint/write/async/total_duration_secs 2_save_breakdown/total_async_s s
/jax/orbax/write/directory_creation_secs 2_save_breakdown/directory_creation_s s
/jax/orbax/write/async_directory_creation_secs 2_save_breakdown/async_directory_creation_s s
/jax/orbax/write/blocking_directory_creation_secs 2_save_breakdown/blocking_directory_creation_s s
/jax/orbax/write/checkpoint_start_sync_duration_secs 2_save_breakdown/checkpoint_start_sync_s s
/jax/orbax/write/blocking_sync_item_duration_secs 2_save_breakdown/blocking_sync_item_s s
/jax/orbax/write/background_directory_creation_secs 2_save_breakdown/background_directory_creation_s s
/jax/orbax/write/background_item_finalize_secs 2_save_breakdown/background_item_finalize_s s
/jax/checkpoint/write/async/metadata_write_duration_secs 2_save_breakdown/metadata_write_s s
/jax/checkpoint/write/async/commit_duration_sec 2_save_breakdown/commit_s s
/jax/checkpoint/write/async/thread_duration_sec 2_save_breakdown/thread_duration_s s
/jax/checkpoint/write/async/commit_future_count 2_save_breakdown/commit_future_count count
/jax/checkpoint/write/duration_since_last_checkpoint_secs 2_save_breakdown/duration_since_last_save_s s
/jax/checkpoint/write/async/ocdbt_merge_duration_secs 2_save_breakdown/ocdbt_merge_s s
/jax/orbax/read/blocking_duration_secs 3_load_breakdown/blocking_s s
/jax/orbax/read/async/blocking_duration_secs 3_load_breakdown/blocking_async_s s
/jax/orbax/read/total_duration_secs 3_load_breakdown/total_s s
/jax/orbax/read/async/total_duration_secs 3_load_breakdown/total_async_s s
/jax/orbax/read/worker/total_duration_secs 3_load_breakdown/worker_io_s s
/jax/checkpoint/read/primary_replica_deserialization_duration_secs 3_load_breakdown/primary_deserialization_s s
/jax/checkpoint/read/broadcast_duration_secs 3_load_breakdown/broadcast_s s
/jax/orbax/write/blocking_gbytes_per_sec 4_throughput/save_blocking_gbps GiB/s
/jax/orbax/write/gbytes_per_sec 4_throughput/save_total_gbps GiB/s
/jax/orbax/read/worker/io/requested/throughput/gbytes_per_sec 4_throughput/load_per_host_gbps GiB/s
/jax/checkpoint/read/gbytes_per_sec 4_throughput/load_total_gbps GiB/s
/jax/orbax/write/gbytes 5_inventory/save_total_gb GiB
/jax/orbax/write/compressed_gbytes 5_inventory/save_compressed_gb GiB
/jax/orbax/write/replicated_array_gb 5_inventory/replicated_array_gb GiB
/jax/orbax/write/sharded_array_gb 5_inventory/sharded_array_gb GiB
/jax/orbax/read/worker/io/requested/gbytes 5_inventory/load_requested_gb GiB
/jax/checkpoint/read/gbytes 5_inventory/load_total_gb GiB
/jax/orbax/read/safetensors/bytes_read 6_io/file_bytes_read_per_host bytes
/jax/orbax/read/safetensors/num_reads 6_io/file_reads_per_host_count count
/jax/orbax/read/safetensors/storage_reads 6_io/storage_reads_per_host_count count
/jax/compilation_cache/cache_retrieval_time_sec 8_jax/cache_retrieval_s s
/jax/compilation_cache/compile_time_saved_sec 8_jax/compile_time_saved_s s
/jax/checkpoint/sync_global_devices_duration_sec 7_overhead/sync_global_devices_s s
/jax/orbax/checkpoint_manager/threaded_checkpoint_deleter/duration 7_overhead/delete_threaded_s s
/jax/orbax/checkpoint_manager/standard_checkpoint_deleter/duration 7_overhead/delete_standard_s s
/jax/compilation_cache/cache_hits 8_jax/cache_hits_count count
/jax/compilation_cache/cache_misses 8_jax/cache_misses_count count
/jax/compilation_cache/compile_requests_use_cache 8_jax/compile_requests_use_cache_count count
/jax/compilation_cache/tasks_using_cache 8_jax/tasks_using_cache_count count
/jax/compilation_cache/task_disabled_cache 8_jax/task_disabled_cache_count count
"""  # noqa: E501  # a table reads best with one row per line


@pytest.mark.parametrize("row", EXPECTED.strip().splitlines())
def test_event_has_its_published_tag_and_unit(row: str) -> None:
    event, tag, unit = row.split()

    metric = events.BY_EVENT[event]

    assert (metric.name, metric.unit) == (tag, unit)


def test_rates_and_ratios_are_never_summed() -> None:
    summed = {metric.unit for metric in events.METRICS if metric.aggregate == "sum"}

    assert summed == {"s", "GiB", "bytes", "count"}


@pytest.mark.parametrize(
    "event",
    [
        "/jax/orbax/write/start_time",
        "/jax/orbax/write/blocking_end_time",
        "/jax/orbax/write/async/start_time",
        "/jax/orbax/write/async/blocking_end_time",
    ],
)
def test_defect_22_moments_are_no_metrics(event: str) -> None:
    assert not events.is_metric("scalar", event)


def test_events_of_others_are_no_metrics() -> None:
    assert not events.is_metric("duration", "/grain/read/duration_secs")


@pytest.mark.parametrize(
    ("kind", "event", "name", "unit", "aggregate"),
    [
        ("duration", "/jax/orbax/a/b_secs", "9_other/orbax_a_b_secs", "s", "sum"),
        ("scalar", "/jax/orbax/a/gbytes", "9_other/orbax_a_gbytes", "GiB", "sum"),
        (
            "scalar",
            "/jax/orbax/a/gbytes_per_sec",
            "9_other/orbax_a_gbytes_per_sec",
            "GiB/s",
            "last",
        ),
        (
            "duration",
            "/jax/checkpoint/read/bytes_per_sec",
            "9_other/checkpoint_read_bytes_per_sec",
            "bytes/s",
            "last",
        ),
        ("scalar", "/jax/orbax/a/enabled", "9_other/orbax_a_enabled", "", "last"),
        ("scalar", "/jax/orbax/a/step_count", "9_other/orbax_a_step_count", "count", "sum"),
        ("occurrence", "/jax/checkpoint/a", "9_other/checkpoint_a", "count", "sum"),
    ],
)
def test_unknown_events_surface_under_other(
    kind: Kind, event: str, name: str, unit: str, aggregate: str
) -> None:
    metric = events.metric_of(kind, event)

    assert (metric.name, metric.unit, metric.aggregate) == (name, unit, aggregate)


@pytest.mark.parametrize("name", ["9_other/", "3_load_breakdown/no_such_s_max", "time_s"])
def test_names_that_no_event_gives_do_not_resolve(name: str) -> None:
    assert events.resolve(name) is None
