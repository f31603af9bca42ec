"""Collector `disk_io`: bytes that the process moved, by system calls and to and from storage."""

from __future__ import annotations

from orbax_bench_core.measure.collectors import kernel_file
from orbax_bench_core.measure.collectors.base import Reading
from orbax_bench_core.measure.definition import Metric

# What Linux counts: Documentation/filesystems/proc.rst, section 3.3.
_FILE = "/proc/self/io"

DISK_READ = Metric(
    name="6_io/disk_read_bytes",
    unit="bytes",
    better="none",
    description="Bytes that the process had fetched from storage, with read-ahead; 0 on a tmpfs",
    collector="disk_io",
)
DISK_WRITE = Metric(
    name="6_io/disk_write_bytes",
    unit="bytes",
    better="none",
    description=(
        "Bytes that the process caused to be written to storage, counted in whole pages when they "
        "become dirty"
    ),
    collector="disk_io",
)
CANCELLED = Metric(
    name="6_io/disk_write_cancelled_bytes",
    unit="bytes",
    better="none",
    description="Bytes among disk_write_bytes, of any block, whose file went before they were due",
    collector="disk_io",
)
READ_CALLS = Metric(
    name="6_io/read_call_bytes",
    unit="bytes",
    better="none",
    description=(
        "Bytes that read calls returned, from the page cache, pipes and terminals too; inner "
        "blocks add some thousand bytes each by being measured"
    ),
    collector="disk_io",
)
WRITE_CALLS = Metric(
    name="6_io/write_call_bytes",
    unit="bytes",
    better="none",
    description="Bytes given to write calls, to pipes and terminals too",
    collector="disk_io",
)
CACHE_HITS = Metric(
    name="6_io/page_cache_hit_bytes",
    unit="bytes",
    better="none",
    description=(
        "Estimate of the bytes that the page cache spared a read from storage: read_call_bytes - "
        "disk_read_bytes, at least 0. Memory-mapped reads lower it, pipes raise it"
    ),
    collector="disk_io",
)
METRICS = (DISK_READ, DISK_WRITE, CANCELLED, READ_CALLS, WRITE_CALLS, CACHE_HITS)

_COUNTERS = (
    (DISK_READ, b"read_bytes:"),
    (DISK_WRITE, b"write_bytes:"),
    (CANCELLED, b"cancelled_write_bytes:"),
    (WRITE_CALLS, b"wchar:"),
)


class DiskIo:
    """Bytes read and written by all threads of the process, end less start.

    Gives nothing where the kernel does not count them.
    """

    def __init__(self) -> None:
        self._read = kernel_file.reader(_FILE)
        self._before = b""

    def start(self) -> None:
        """Reads the counters."""
        if self._read is not None:
            self._before = self._read(0)

    def stop(self) -> list[Reading]:
        """The bytes since `start`."""
        if self._read is None:
            return []
        before, after = _parse(self._before), _parse(self._read(0))
        # The reading at the start is itself a read call, which the kernel counts once it is done.
        called = after[b"rchar:"] - before[b"rchar:"] - len(self._before)
        fetched = after[b"read_bytes:"] - before[b"read_bytes:"]
        return [
            *(
                Reading(metric.name, float(after[key] - before[key]), metric.unit)
                for metric, key in _COUNTERS
            ),
            Reading(READ_CALLS.name, float(called), READ_CALLS.unit),
            Reading(CACHE_HITS.name, float(max(0, called - fetched)), CACHE_HITS.unit),
        ]


def _parse(text: bytes) -> dict[bytes, int]:
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))
