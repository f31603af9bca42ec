"""Page faults."""

from __future__ import annotations

import mmap
from collections.abc import Callable

import pytest

from orbax_bench_core.measure.collectors.kernel_counters import PageFaults

PAGES = 4096
MINOR = "7_memory/minor_faults_count"


@pytest.fixture
def memory() -> mmap.mmap:
    """Fresh memory in pages of the usual size."""
    fresh = mmap.mmap(-1, PAGES * mmap.PAGESIZE)
    fresh.madvise(mmap.MADV_NOHUGEPAGE)
    return fresh


def touch(memory: mmap.mmap) -> None:
    for page in range(PAGES):
        memory[page * mmap.PAGESIZE] = 1


def collect(operation: Callable[[], object]) -> dict[str, float]:
    collector = PageFaults()
    collector.start()
    operation()
    return {reading.metric: reading.value for reading in collector.stop()}


def test_every_first_touch_of_a_page_counts(memory: mmap.mmap) -> None:
    assert collect(lambda: touch(memory))[MINOR] == pytest.approx(PAGES, abs=PAGES / 10)


def test_memory_without_a_file_waits_for_no_storage(memory: mmap.mmap) -> None:
    assert collect(lambda: touch(memory))["7_memory/major_faults_count"] < PAGES / 10
