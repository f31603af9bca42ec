"""Waiting and work of TensorStore's threads."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as ts

from orbax_bench_core.measure import known_metrics
from orbax_bench_core.measure.collectors.thread_pool import ThreadPool

QUEUE = "6_tensorstore/thread_pool_queue_s"
MAX_DELAY = "6_tensorstore/thread_pool_max_delay_s"
LIVE = "6_tensorstore/futures_live_count"


class FakeLibrary:
    """A TensorStore whose metrics a test sets: delays cannot be had on demand."""

    def __init__(self) -> None:
        self.metrics: list[dict[str, Any]] = []

    def experimental_collect_prometheus_format_metrics(self, prefix: str) -> list[str]:
        return [str(one) for one in self.experimental_collect_matching_metrics(prefix)]

    def experimental_collect_matching_metrics(self, prefix: str) -> list[dict[str, Any]]:
        return [one for one in self.metrics if one["name"].startswith(prefix)]


def metric(name: str, **fields: float) -> dict[str, Any]:
    return {"name": f"/tensorstore/{name}", "values": [fields]}


def collect_from(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> dict[str, float]:
    library = FakeLibrary()
    collector = ThreadPool()
    collector._library = library
    library.metrics = before
    collector.start()
    library.metrics = after
    return {reading.metric: reading.value for reading in collector.stop()}


def test_nanoseconds_become_seconds() -> None:
    found = collect_from(
        [metric("thread_pool/total_queue_time_ns", value=1e9)],
        [metric("thread_pool/total_queue_time_ns", value=3.5e9)],
    )

    assert found == {QUEUE: pytest.approx(2.5)}


def test_a_count_that_appears_counts_from_zero() -> None:
    found = collect_from([], [metric("thread_pool/started", value=3)])

    assert found == {"6_tensorstore/thread_pool_started_count": 3}


def test_a_delay_longer_than_all_before_is_given() -> None:
    found = collect_from(
        [metric("thread_pool/max_delay_ns", max_value=1_000_000)],
        [metric("thread_pool/max_delay_ns", max_value=3_000_000)],
    )

    assert found == {MAX_DELAY: pytest.approx(0.003)}


def test_an_older_delay_is_not() -> None:
    same = [metric("thread_pool/max_delay_ns", max_value=1_000_000)]

    assert collect_from(same, same) == {}


def test_futures_alive_are_a_state_not_a_difference() -> None:
    same = [metric("futures/live", value=4, max_value=9)]

    assert collect_from(same, same) == {LIVE: 4}


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
