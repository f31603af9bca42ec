"""TensorStore's key-value stores, and its thread pool."""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as ts

from orbax_bench_core.measure import known_metrics
from orbax_bench_core.measure.collectors import tensorstore
from orbax_bench_core.measure.collectors.tensorstore import TensorStore, ThreadPool

FILE = "6_tensorstore/tensorstore_kvstore_file_"


def write(path: Path, value: bytes) -> None:
    store = ts.KvStore.open({"driver": "file", "path": f"{path}/"}).result()
    store.write("key", value).result()


def collect(operation: Any) -> dict[str, float]:
    collector = TensorStore()
    collector.start()
    operation()
    return {reading.metric: reading.value for reading in collector.stop()}


def test_bytes_written_are_exact(tmp_path: Path) -> None:
    found = collect(lambda: write(tmp_path, b"x" * 1_234_567))

    assert found[f"{FILE}bytes_written_value_diff"] == 1_234_567


def test_latencies_have_a_count(tmp_path: Path) -> None:
    def write_thrice() -> None:
        for _ in range(3):
            write(tmp_path, b"x")

    found = collect(write_thrice)

    assert found[f"{FILE}write_latency_ms_count_diff"] == 3


def test_changes_of_other_threads_are_seen(tmp_path: Path) -> None:
    def work() -> None:
        thread = threading.Thread(target=write, args=(tmp_path, b"abc"))
        thread.start()
        thread.join()

    assert collect(work)[f"{FILE}bytes_written_value_diff"] == 3


class FakeLibrary:
    """A TensorStore whose metrics a test sets: labels and latencies cannot be had on demand."""

    def __init__(self) -> None:
        self.metrics: list[dict[str, Any]] = []

    def experimental_collect_prometheus_format_metrics(self, prefix: str) -> list[str]:
        return [str(one) for one in self.experimental_collect_matching_metrics(prefix)]

    def experimental_collect_matching_metrics(self, prefix: str) -> list[dict[str, Any]]:
        return [one for one in self.metrics if one["name"].startswith(prefix)]


def collect_from(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> dict[str, float]:
    library = FakeLibrary()
    collector = TensorStore()
    collector._library = library  # type: ignore[assignment]
    library.metrics = before
    collector.start()
    library.metrics = after
    return {reading.metric: reading.value for reading in collector.stop()}


def labelled(changed: int, unchanged: int) -> list[dict[str, Any]]:
    values = [
        {"category": "changed", "value": changed},
        {"category": "unchanged", "value": unchanged},
    ]
    return [{"name": "/tensorstore/cache/kvs_cache_read", "values": values}]


def latency(count: int, mean: float, **buckets: int) -> list[dict[str, Any]]:
    ends = {name.removeprefix("below_"): number for name, number in buckets.items()}
    values = [{"0": 0, **ends, "count": count, "mean": mean}]
    return [{"name": "/tensorstore/kvstore/file/read_latency_ms", "values": values}]


def test_labelled_metrics_are_summed_over_their_labels() -> None:
    found = collect_from(labelled(1, 2), labelled(5, 4))

    assert found["6_tensorstore/tensorstore_cache_kvs_cache_read_value_diff"] == 6


def test_the_mean_is_that_of_the_observations_of_the_block() -> None:
    found = collect_from(latency(10, 2.0), latency(14, 4.0))

    assert found[f"{FILE}read_latency_ms_mean"] == pytest.approx((14 * 4.0 - 10 * 2.0) / 4)


def test_quantiles_are_bounds_of_the_observations_of_the_block() -> None:
    found = collect_from(
        latency(1000, 0.0, below_1=1000), latency(1100, 0.0, below_1=1060, below_4=38, below_512=2)
    )

    assert found[f"{FILE}read_latency_ms_p50"] == 1.0
    assert found[f"{FILE}read_latency_ms_p99"] == 512.0


def test_a_metric_that_appears_counts_from_zero() -> None:
    found = collect_from([], latency(2, 3.0))

    assert found[f"{FILE}read_latency_ms_count_diff"] == 2


def test_metrics_outside_the_chosen_prefixes_are_left_out() -> None:
    other = [{"name": "/tensorstore/thread_pool/started", "values": [{"value": 3}]}]

    assert collect_from([], other) == {"6_tensorstore/changed_metric_count": 0}


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("tensorstore_kvstore_file_bytes_read_value_diff", "bytes"),
        ("tensorstore_kvstore_gcs_bytes_written_value_diff", "bytes"),
        ("tensorstore_kvstore_s3_read_latency_ms_count_diff", "count"),
        ("tensorstore_kvstore_s3_read_latency_ms_mean", "ms"),
        ("tensorstore_kvstore_s3_read_latency_ms_p99", "ms"),
        ("tensorstore_kvstore_ocdbt_indirect_data_write_size_mean", "bytes"),
        ("tensorstore_kvstore_file_batch_read_value_diff", "count"),
        ("tensorstore_cache_hit_count_value_diff", "count"),
    ],
)
def test_units_follow_from_names(name: str, unit: str) -> None:
    metric = tensorstore.resolve(f"6_tensorstore/{name}")

    assert metric is not None
    assert metric.unit == unit


@pytest.mark.parametrize(
    "name", ["6_tensorstore/nonsense", "6_tensorstore/tensorstore_kvstore_x", "0_basics/x_mean"]
)
def test_names_of_no_tensorstore_metric_do_not_resolve(name: str) -> None:
    assert tensorstore.resolve(name) is None


@pytest.mark.parametrize("suffix", ["mean", "p50", "p99"])
def test_a_shorter_latency_is_better(suffix: str) -> None:
    metric = tensorstore.resolve(f"{FILE}read_latency_ms_{suffix}")

    assert metric is not None
    assert metric.better == "lower"


QUEUE = "6_tensorstore/thread_pool_queue_s"
MAX_DELAY = "6_tensorstore/thread_pool_max_delay_s"
LIVE = "6_tensorstore/futures_live_count"


class FakePoolLibrary:
    """A TensorStore whose metrics a test sets: delays cannot be had on demand."""

    def __init__(self) -> None:
        self.metrics: list[dict[str, Any]] = []

    def experimental_collect_prometheus_format_metrics(self, prefix: str) -> list[str]:
        return [str(one) for one in self.experimental_collect_matching_metrics(prefix)]

    def experimental_collect_matching_metrics(self, prefix: str) -> list[dict[str, Any]]:
        return [one for one in self.metrics if one["name"].startswith(prefix)]


def pool_metric(name: str, **fields: float) -> dict[str, Any]:
    return {"name": f"/tensorstore/{name}", "values": [fields]}


def collect_pool_from(
    before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> dict[str, float]:
    library = FakePoolLibrary()
    collector = ThreadPool()
    collector._library = library
    library.metrics = before
    collector.start()
    library.metrics = after
    return {reading.metric: reading.value for reading in collector.stop()}


def test_nanoseconds_become_seconds() -> None:
    found = collect_pool_from(
        [pool_metric("thread_pool/total_queue_time_ns", value=1e9)],
        [pool_metric("thread_pool/total_queue_time_ns", value=3.5e9)],
    )

    assert found == {QUEUE: pytest.approx(2.5)}


def test_a_count_that_appears_counts_from_zero() -> None:
    found = collect_pool_from([], [pool_metric("thread_pool/started", value=3)])

    assert found == {"6_tensorstore/thread_pool_started_count": 3}


def test_a_delay_longer_than_all_before_is_given() -> None:
    found = collect_pool_from(
        [pool_metric("thread_pool/max_delay_ns", max_value=1_000_000)],
        [pool_metric("thread_pool/max_delay_ns", max_value=3_000_000)],
    )

    assert found == {MAX_DELAY: pytest.approx(0.003)}


def test_an_older_delay_is_not() -> None:
    same = [pool_metric("thread_pool/max_delay_ns", max_value=1_000_000)]

    assert collect_pool_from(same, same) == {}


def test_futures_alive_are_a_state_not_a_difference() -> None:
    same = [pool_metric("futures/live", value=4, max_value=9)]

    assert collect_pool_from(same, same) == {LIVE: 4}


@pytest.mark.slow
def test_work_of_the_library_has_its_waiting(tmp_path: Path) -> None:
    collector = ThreadPool()
    collector.start()
    store = ts.open(
        {"driver": "zarr3", "kvstore": f"file://{tmp_path}/"},
        create=True,
        dtype=ts.float32,
        shape=[256, 256],
        chunk_layout=ts.ChunkLayout(chunk_shape=[16, 256]),
    ).result()
    store.write(np.ones((256, 256), np.float32)).result()
    deadline = time.monotonic() + 60  # the library reports when its threads have fallen idle
    while not any(one.metric == QUEUE for one in collector.stop()):
        assert time.monotonic() < deadline
        time.sleep(0.05)

    readings = collector.stop()

    assert {one.metric: one.value for one in readings}[QUEUE] > 0
    assert [known_metrics.lookup(one.metric).unit for one in readings] == [
        one.unit for one in readings
    ]
