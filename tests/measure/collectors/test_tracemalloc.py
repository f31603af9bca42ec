"""Peaks of Python allocations."""

from __future__ import annotations

import logging
import tracemalloc

import pytest

from orbax_bench_core.measure import Metrics
from orbax_bench_core.measure.collectors.tracemalloc import Tracemalloc

MIB = 2**20
KEYS = ["tracemalloc"]
PEAK = "7_memory/tracemalloc_peak_diff_mb"


def test_a_peak_that_is_gone_at_the_end_still_counts() -> None:
    metrics = Metrics()

    with metrics.measure("op", KEYS):
        len(bytes(8 * MIB))

    assert metrics.results[f"op_{PEAK}"][0] == pytest.approx(8, abs=0.5)


def test_an_inner_block_does_not_hide_the_peak_of_the_outer_one() -> None:
    metrics = Metrics()

    with metrics.measure("outer", KEYS):
        len(bytes(8 * MIB))
        with metrics.measure("inner", KEYS):
            pass

    assert metrics.results[f"outer_{PEAK}"][0] == pytest.approx(8, abs=0.5)


def test_the_peak_of_the_outer_block_does_not_count_for_the_inner_one() -> None:
    metrics = Metrics()

    with metrics.measure("outer", KEYS):
        len(bytes(8 * MIB))
        with metrics.measure("inner", KEYS):
            len(bytes(2 * MIB))

    assert metrics.results[f"inner_{PEAK}"][0] == pytest.approx(2, abs=0.5)


def test_the_peak_of_an_inner_block_counts_for_the_outer_one() -> None:
    metrics = Metrics()

    with metrics.measure("outer", KEYS), metrics.measure("inner", KEYS):
        len(bytes(8 * MIB))

    assert metrics.results[f"outer_{PEAK}"][0] == pytest.approx(8, abs=0.5)


def test_tracing_ends_with_the_last_block() -> None:
    with Metrics().measure("op", KEYS):
        inside = tracemalloc.is_tracing()

    assert (inside, tracemalloc.is_tracing()) == (True, False)


def test_tracing_that_others_began_goes_on() -> None:
    tracemalloc.start()
    try:
        with Metrics().measure("op", KEYS):
            pass
        still = tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()

    assert still


def test_the_top_sites_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    collector = Tracemalloc()
    collector.start()
    kept = bytes(MIB)

    collector.stop()

    assert len(kept) == MIB
    assert "test_tracemalloc.py" in caplog.text
