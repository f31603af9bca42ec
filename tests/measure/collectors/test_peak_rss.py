"""Peaks of the resident set."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable

import pytest

from orbax_bench_core.measure import Metrics
from orbax_bench_core.measure.collectors import resident_memory
from orbax_bench_core.measure.collectors.resident_memory import resident_bytes

MIB = 2**20
KEYS = ["peak_rss"]
DIFF = "7_memory/host_peak_rss_diff_mb"
IS_BOUND = "7_memory/host_peak_rss_is_bound"
# Other threads of the process come and go.
SLACK = 6


SAMPLED = threading.Event()
"""Set by each sample, which a busy machine may take late."""


@pytest.fixture(params=["kernel", "sampled"])
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the peak comes from."""
    if request.param == "sampled":
        monkeypatch.setattr(resident_memory, "has_mark", lambda: False)
        monkeypatch.setattr(resident_memory, "resident_bytes", noticed(resident_bytes))
    elif not resident_memory.has_mark():
        pytest.skip("the kernel lets nobody reset VmHWM")
    return str(request.param)


def noticed(read: Callable[[], int]) -> Callable[[], int]:
    def sample() -> int:
        found = read()
        if threading.current_thread() is not threading.main_thread():
            SAMPLED.set()
        return found

    return sample


def hold(mebibytes: int) -> None:
    """Needs memory, for long enough that a sample sees it."""
    # Mapped for itself: an allocator may hand out what other tests have left resident.
    with mmap.mmap(-1, mebibytes * MIB) as memory:
        for start in range(0, mebibytes * MIB, mmap.PAGESIZE):
            memory[start] = 1
        sampling = any(not block._exact for block in resident_memory._open)
        for _ in range(2 * sampling):  # the first may have begun before
            SAMPLED.clear()
            assert SAMPLED.wait(60)


@pytest.mark.usefixtures("source")
def test_defect_9_a_peak_that_is_gone_at_the_end_still_counts() -> None:
    metrics = Metrics()

    with metrics.measure("op", KEYS):
        hold(64)

    assert metrics.results[f"op_{DIFF}"][0] == pytest.approx(64, abs=SLACK)


@pytest.mark.usefixtures("source")
def test_the_peak_before_a_block_does_not_count() -> None:
    hold(64)
    metrics = Metrics()

    with metrics.measure("op", KEYS):
        pass

    assert metrics.results[f"op_{DIFF}"][0] == pytest.approx(0, abs=SLACK)


@pytest.mark.usefixtures("source")
def test_an_inner_block_does_not_hide_the_peak_of_the_outer_one() -> None:
    metrics = Metrics()

    with metrics.measure("outer", KEYS):
        hold(64)
        with metrics.measure("inner", KEYS):
            pass

    assert metrics.results[f"outer_{DIFF}"][0] == pytest.approx(64, abs=SLACK)


@pytest.mark.usefixtures("source")
def test_the_peak_of_an_inner_block_counts_for_the_outer_one() -> None:
    metrics = Metrics()

    with metrics.measure("outer", KEYS), metrics.measure("inner", KEYS):
        hold(64)

    assert metrics.results[f"outer_{DIFF}"][0] == pytest.approx(64, abs=SLACK)


def test_it_says_whether_it_is_a_bound(source: str) -> None:
    metrics = Metrics()

    with metrics.measure("op", KEYS):
        pass

    assert metrics.results[f"op_{IS_BOUND}"][0] == float(source == "sampled")
