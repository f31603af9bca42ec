"""Counters of the Linux kernel: storage and network I/O, page faults, memory of the control group.

Collectors `disk_io`, `network`, `page_faults` and `cgroup_memory`. Each gives nothing where the
kernel does not count.
"""

import functools
import operator
import os
import resource
from collections.abc import Iterator

from orbax_bench_core.measure.collectors import base
from orbax_bench_core.measure.definition import Metric
from orbax_bench_core.measure.free_memory import group_file

# What Linux counts: Documentation/filesystems/proc.rst, section 3.3.
_IO_FILE = "/proc/self/io"
_NET_FILE = "/proc/self/net/dev"

_disk_bytes = functools.partial(Metric, unit="bytes", better="none", collector="disk_io")
DISK_READ = _disk_bytes(
    name="6_io/disk_read_bytes",
    description="Bytes that the process had fetched from storage, with read-ahead; 0 on a tmpfs",
)
DISK_WRITE = _disk_bytes(
    name="6_io/disk_write_bytes",
    description=(
        "Bytes that the process caused to be written to storage, counted in whole pages when they "
        "become dirty"
    ),
)
CANCELLED = _disk_bytes(
    name="6_io/disk_write_cancelled_bytes",
    description="Bytes among disk_write_bytes, of any block, whose file went before they were due",
)
READ_CALLS = _disk_bytes(
    name="6_io/read_call_bytes",
    description=(
        "Bytes that read calls returned, from the page cache, pipes and terminals too; inner "
        "blocks add some thousand bytes each by being measured"
    ),
)
WRITE_CALLS = _disk_bytes(
    name="6_io/write_call_bytes",
    description="Bytes given to write calls, to pipes and terminals too",
)
CACHE_HITS = _disk_bytes(
    name="6_io/page_cache_hit_bytes",
    description=(
        "Estimate of the bytes that the page cache spared a read from storage: read_call_bytes - "
        "disk_read_bytes, at least 0. Memory-mapped reads lower it, pipes raise it"
    ),
)
_DISK = base.MetricGroup(DISK_READ, DISK_WRITE, CANCELLED, READ_CALLS, WRITE_CALLS, CACHE_HITS)

_network_bytes = functools.partial(Metric, unit="bytes", better="none", collector="network")
RECEIVED = _network_bytes(
    name="6_io/network_receive_bytes",
    description=(
        "Bytes received by all interfaces but loopback, for the whole host (or container), not for "
        "this process alone; bridged traffic counts on every interface that it passes"
    ),
)
SENT = _network_bytes(
    name="6_io/network_transmit_bytes",
    description="Bytes sent, counted as network_receive_bytes are",
)
LOOPBACK = _network_bytes(
    name="6_io/network_loopback_bytes",
    description="Bytes that processes of this host (or container) sent each other over loopback",
)
_NETWORK = base.MetricGroup(RECEIVED, SENT, LOOPBACK)

_faults = functools.partial(Metric, unit="count", better="lower", collector="page_faults")
MINOR = _faults(
    name="7_memory/minor_faults_count",
    description=(
        "Page faults that needed no storage: mostly the first touch of fresh memory, which can "
        "dominate a load"
    ),
)
MAJOR = _faults(
    name="7_memory/major_faults_count", description="Page faults that waited for storage"
)
_FAULTS = base.MetricGroup(MINOR, MAJOR)

GROUP_PEAK = Metric(
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
GROUP_PEAK_IS_BOUND = Metric(
    name="7_memory/cgroup_peak_is_bound",
    unit="",
    better="none",
    description=(
        "1 when the block stayed below an earlier peak of the group, whose mark nobody but its "
        "owner can reset; 0 when the block set the mark, so that it is the block's own peak"
    ),
    collector="cgroup_memory",
)
_GROUP = base.MetricGroup(GROUP_PEAK, GROUP_PEAK_IS_BOUND)
METRICS = (*_DISK.metrics, *_NETWORK.metrics, *_FAULTS.metrics, *_GROUP.metrics)
_HEADER_LINES = 2
_LOOPBACK = b"lo"
_SENT_COLUMN = 8


class DiskIo(base.Difference[bytes]):
    """Bytes read and written by all threads of the process, end less start."""

    def __init__(self) -> None:
        self._file = base.reader(_IO_FILE)

    def _read(self) -> bytes | None:
        return None if self._file is None else self._file(0)

    def _compare(self, before: bytes, after: bytes) -> list[base.Reading]:
        called, given, read, written, cancelled = map(
            operator.sub, _io_counters(after), _io_counters(before)
        )
        # The reading at the start is itself a read call, which the kernel counts once it is done.
        called -= len(before)
        return _DISK.readings(read, written, cancelled, called, given, max(0, called - read))


def _io_counters(text: bytes) -> Iterator[int]:
    _, called, _, given, _, _, _, _, _, read, _, written, _, cancelled = text.split()
    return map(int, (called, given, read, written, cancelled))


class Network(base.Difference[bytes]):
    """Bytes over network interfaces, end less start; nothing where the kernel does not count."""

    def __init__(self) -> None:
        self._file = base.reader(_NET_FILE)

    def _read(self) -> bytes | None:
        return None if self._file is None else base.read_all(self._file)

    def _compare(self, before: bytes, after: bytes) -> list[base.Reading]:
        if after == before:
            return _NETWORK.readings(0, 0, 0)
        return _NETWORK.readings(
            *map(operator.sub, _interface_counters(after), _interface_counters(before))
        )


def _interface_counters(text: bytes) -> tuple[int, int, int]:
    received = sent = loopback = 0
    for line in text.splitlines()[_HEADER_LINES:]:
        name, _, columns = line.partition(b":")
        numbers = columns.split()
        if name.strip() == _LOOPBACK:
            loopback += int(numbers[0])
        else:
            received += int(numbers[0])
            sent += int(numbers[_SENT_COLUMN])
    return received, sent, loopback


class PageFaults(base.Difference[tuple[int, int]]):
    """Page faults of all threads of the process, end less start."""

    def _read(self) -> tuple[int, int]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_minflt, usage.ru_majflt

    def _compare(self, before: tuple[int, int], after: tuple[int, int]) -> list[base.Reading]:
        return _FAULTS.readings(after[0] - before[0], after[1] - before[1])


class CgroupMemory(base.Difference[int]):
    """The high-water mark of the control group's memory, in MiB; nothing without such a group."""

    def __init__(self) -> None:
        path = _peak_file(os.getpid())
        self._file = None if path is None else base.reader(path)

    def _read(self) -> int | None:
        return None if self._file is None else int(self._file(0))

    def _compare(self, before: int, after: int) -> list[base.Reading]:
        return _GROUP.readings(after / 2**20, after <= before)


@functools.lru_cache(maxsize=1)
def _peak_file(_pid: int) -> str | None:
    return group_file("peak")
