"""Bytes that the process moved."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from orbax_bench_core.measure.collectors import kernel_counters
from orbax_bench_core.measure.collectors.kernel_counters import DiskIo

SIZE = 8 * 2**20
# Other threads of the process may read and write too.
SLACK = 2**17

DISK_READ = "6_io/disk_read_bytes"
DISK_WRITE = "6_io/disk_write_bytes"
READ_CALLS = "6_io/read_call_bytes"
WRITE_CALLS = "6_io/write_call_bytes"
CACHE_HITS = "6_io/page_cache_hit_bytes"


def collect(operation: Callable[[], object]) -> dict[str, float]:
    collector = DiskIo()
    collector.start()
    operation()
    return {reading.metric: reading.value for reading in collector.stop()}


def read(path: Path) -> None:
    path.read_bytes()


@pytest.fixture
def warm(tmp_path: Path) -> Path:
    """A file that is on storage and in the page cache."""
    path = tmp_path / "data"
    with path.open("wb") as file:
        file.write(os.urandom(SIZE))
        file.flush()
        os.fsync(file.fileno())
    return path


@pytest.fixture
def cold(warm: Path) -> Path:
    """A file that is on storage alone."""
    with warm.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if collect(lambda: read(warm))[DISK_READ] == 0:
        pytest.skip("this file system keeps everything in memory, or does not count")
    with warm.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return warm


def test_defect_8_a_cold_read_comes_from_storage(cold: Path) -> None:
    found = collect(lambda: read(cold))

    assert found[DISK_READ] >= SIZE


def test_defect_8_a_warm_read_does_not(warm: Path) -> None:
    found = collect(lambda: read(warm))

    assert found[DISK_READ] <= SLACK


def test_defect_8_what_the_page_cache_gave_is_estimated(warm: Path) -> None:
    found = collect(lambda: read(warm))

    assert found[CACHE_HITS] == pytest.approx(SIZE, abs=SLACK)


def test_a_cold_read_hits_no_page_cache(cold: Path) -> None:
    assert collect(lambda: read(cold))[CACHE_HITS] <= SLACK


def test_read_calls_count_wherever_the_bytes_come_from(warm: Path) -> None:
    assert collect(lambda: read(warm))[READ_CALLS] == pytest.approx(SIZE, abs=SLACK)


def test_write_calls_count(tmp_path: Path) -> None:
    data = bytes(SIZE)

    found = collect(lambda: (tmp_path / "new").write_bytes(data))

    assert found[WRITE_CALLS] == pytest.approx(SIZE, abs=SLACK)


def test_pages_that_became_dirty_count_as_written(cold: Path) -> None:
    data = bytes(SIZE)

    found = collect(lambda: (cold.parent / "new").write_bytes(data))

    assert found[DISK_WRITE] == pytest.approx(SIZE, abs=SLACK)


def test_a_kernel_that_does_not_count_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_counters, "_IO_FILE", "/proc/self/no_such_file")

    assert collect(lambda: None) == {}
