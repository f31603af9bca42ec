"""Collector `disk_io`: bytes that the process moved, by system calls and to and from storage."""

from __future__ import annotations

import functools
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from orbax_bench_core.measure.collectors.base import Reading
from orbax_bench_core.measure.definition import Metric

# What Linux counts: Documentation/filesystems/proc.rst, section 3.3.
_IO_FILE = "/proc/self/io"

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
DISK_METRICS = (DISK_READ, DISK_WRITE, CANCELLED, READ_CALLS, WRITE_CALLS, CACHE_HITS)

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
        self._read = reader(_IO_FILE)
        self._before = b""

    def start(self) -> None:
        """Reads the counters."""
        if self._read is not None:
            self._before = self._read(0)

    def stop(self) -> list[Reading]:
        """The bytes since `start`."""
        if self._read is None:
            return []
        before, after = _parse_io(self._before), _parse_io(self._read(0))
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


def _parse_io(text: bytes) -> dict[bytes, int]:
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


PEAK = Metric(
    name="7_memory/cgroup_peak_mb",
    unit="MiB",
    better="lower",
    description=(
        "Largest memory use so far of the process's control group, a container as a rule: all its "
        "processes, and the page cache. Where cgroup_peak_is_bound is 1, the block's own peak is "
        "at most this"
    ),
    collector="cgroup_memory",
)
IS_BOUND = Metric(
    name="7_memory/cgroup_peak_is_bound",
    unit="",
    better="none",
    description=(
        "1 when the block stayed below an earlier peak of the group, whose mark nobody but its "
        "owner can reset; 0 when the block set the mark, so that it is the block's own peak"
    ),
    collector="cgroup_memory",
)
CGROUP_METRICS = (PEAK, IS_BOUND)

_MEMBERSHIP = Path("/proc/self/cgroup")
_ROOT = Path("/sys/fs/cgroup")


class CgroupMemory:
    """The high-water mark of the control group's memory, in MiB; nothing without such a group."""

    def __init__(self) -> None:
        path = _peak_file(os.getpid())
        self._read = None if path is None else reader(path)
        self._before = 0

    def start(self) -> None:
        """Reads the mark."""
        if self._read is not None:
            self._before = int(self._read(0))

    def stop(self) -> list[Reading]:
        """The mark, and whether it rose since `start`."""
        if self._read is None:
            return []
        peak = int(self._read(0))
        return [
            Reading(PEAK.name, peak / 2**20, PEAK.unit),
            Reading(IS_BOUND.name, float(peak <= self._before), IS_BOUND.unit),
        ]


@functools.lru_cache(maxsize=1)
def _peak_file(_pid: int) -> str | None:
    if not _MEMBERSHIP.exists():
        return None
    return next((str(one) for one in _candidates(_MEMBERSHIP.read_text()) if one.exists()), None)


def _candidates(membership: str) -> Iterator[Path]:
    for line in membership.splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            root, name = _ROOT, "memory.peak"
        elif "memory" in controllers.split(","):
            root, name = _ROOT / "memory", "memory.max_usage_in_bytes"
        else:
            continue
        yield root / group.lstrip("/") / name
        # A container may see the group under the host's name, and its files at the root.
        yield root / name


_NET_FILE = "/proc/self/net/dev"
_HEADER_LINES = 2
_LOOPBACK = b"lo"
_SENT_COLUMN = 8

RECEIVED = Metric(
    name="6_io/network_receive_bytes",
    unit="bytes",
    better="none",
    description=(
        "Bytes received by all interfaces but loopback, for the whole host (or container), not for "
        "this process alone; bridged traffic counts on every interface that it passes"
    ),
    collector="network",
)
SENT = Metric(
    name="6_io/network_transmit_bytes",
    unit="bytes",
    better="none",
    description="Bytes sent, counted as network_receive_bytes are",
    collector="network",
)
LOOPBACK = Metric(
    name="6_io/network_loopback_bytes",
    unit="bytes",
    better="none",
    description="Bytes that processes of this host (or container) sent each other over loopback",
    collector="network",
)
NETWORK_METRICS = (RECEIVED, SENT, LOOPBACK)


class _Counters(NamedTuple):
    received: int
    sent: int
    loopback: int


class Network:
    """Bytes over network interfaces, end less start; nothing where the kernel does not count."""

    def __init__(self) -> None:
        self._read = reader(_NET_FILE)
        self._before = b""

    def start(self) -> None:
        """Reads the counters."""
        if self._read is not None:
            self._before = read_all(self._read)

    def stop(self) -> list[Reading]:
        """The bytes since `start`."""
        if self._read is None:
            return []
        text = read_all(self._read)
        before = _parse_net(self._before)
        after = before if text == self._before else _parse_net(text)
        return [
            Reading(metric.name, float(new - old), metric.unit)
            for metric, old, new in zip(NETWORK_METRICS, before, after, strict=True)
        ]


def _parse_net(text: bytes) -> _Counters:
    received = sent = loopback = 0
    for line in text.splitlines()[_HEADER_LINES:]:
        name, _, columns = line.partition(b":")
        numbers = columns.split()
        if name.strip() == _LOOPBACK:
            loopback += int(numbers[0])
        else:
            received += int(numbers[0])
            sent += int(numbers[_SENT_COLUMN])
    return _Counters(received, sent, loopback)


MINOR = Metric(
    name="7_memory/minor_faults_count",
    unit="count",
    better="lower",
    description=(
        "Page faults that needed no storage: mostly the first touch of fresh memory, which can "
        "dominate a load"
    ),
    collector="page_faults",
)
MAJOR = Metric(
    name="7_memory/major_faults_count",
    unit="count",
    better="lower",
    description="Page faults that waited for storage",
    collector="page_faults",
)
PAGE_FAULT_METRICS = (MINOR, MAJOR)


class PageFaults:
    """Page faults of all threads of the process, end less start."""

    def __init__(self) -> None:
        self._minor = self._major = 0

    def start(self) -> None:
        """Reads the counts."""
        self._minor, self._major = _read()

    def stop(self) -> list[Reading]:
        """The faults since `start`."""
        minor, major = _read()
        return [
            Reading(MINOR.name, float(minor - self._minor), MINOR.unit),
            Reading(MAJOR.name, float(major - self._major), MAJOR.unit),
        ]


def _read() -> tuple[int, int]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt, usage.ru_majflt


Read = Callable[[int], bytes]

# The kernel gives at most a page per call where it lists things, and all at once where it does not.
_MOST = 16384


def reader(path: str) -> Read | None:
    """How to read a file of the kernel's anew, at a tenth of the cost of opening it each time.

    Args:
        path: For example `/proc/self/io`.

    Returns:
        Takes the offset at which to read; 0 makes the kernel count again. None when this process
        cannot open the file.
    """
    return _reader(path, os.getpid())


def read_all(read: Read) -> bytes:
    """The whole of a file that may be longer than a page."""
    text = b""
    while chunk := read(len(text)):
        text += chunk
    return text


@functools.cache
def _reader(path: str, _pid: int) -> Read | None:
    # By pid: `/proc/self` stays what it was at opening, so a fork would go on reading its parent.
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    return functools.partial(os.pread, file, _MOST)
