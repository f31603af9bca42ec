"""State of the process: its resident set, the growth and the peak of that, open files and threads.

Collectors `rss` and `peak_rss` of a block, and `process_state` of the moment when it ends, for
soaks: what grows from save to save is a difference of levels, and a sum of differences would miss
what happens between blocks. The peak is the kernel's own mark, VmHWM, where this process may reset
it; elsewhere a thread samples the resident set.
"""

from __future__ import annotations

import functools
import mmap
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from orbax_bench_core.measure import observers
from orbax_bench_core.measure.collectors import base
from orbax_bench_core.measure.collectors.base import Difference, MetricGroup, Reading, reader
from orbax_bench_core.measure.definition import Metric
from orbax_bench_core.measure.free_memory import group_file

if TYPE_CHECKING:
    import psutil


INTERVAL_S = 0.01

RSS_GROWTH = Metric(
    name="0_basics/host_rss_diff_mb",
    unit="MiB",
    better="lower",
    description="Resident set size at the end less that at the start; not a peak, may be negative",
    collector="rss",
)
_peak = functools.partial(Metric, collector="peak_rss")
PEAK = _peak(
    name="7_memory/host_peak_rss_mb",
    unit="MiB",
    better="lower",
    description=(
        "Largest resident set of the process inside the block: the kernel's own mark (VmHWM), or "
        "the largest of samples 10 ms apart where host_peak_rss_is_bound is 1"
    ),
)
PEAK_DIFF = _peak(
    name="7_memory/host_peak_rss_diff_mb",
    unit="MiB",
    better="lower",
    description="host_peak_rss_mb less the resident set at the start of the block",
)
IS_BOUND = _peak(
    name="7_memory/host_peak_rss_is_bound",
    unit="",
    better="none",
    description=(
        "1 where the kernel's mark cannot be reset, so that the peak is sampled and the true one "
        "is at least that; 0 where it is exact"
    ),
)
_PEAK = MetricGroup(PEAK, PEAK_DIFF, IS_BOUND)
_STATUS = "/proc/self/status"
_MARK = b"VmHWM:"

# "5" resets VmHWM: Documentation/filesystems/proc.rst of Linux, section 1.1.
_RESET = b"5"


class Rss(Difference[int]):
    """Resident set size of this process, end less start, in MiB."""

    def _read(self) -> int:
        return resident_bytes()

    def _compare(self, before: int, after: int) -> list[Reading]:
        return [Reading(RSS_GROWTH.name, (after - before) / 2**20, RSS_GROWTH.unit)]


def resident_bytes() -> int:
    """Bytes of memory that this process holds now, shared pages included."""
    pages = base.reader("/proc/self/statm")
    if pages is None:
        return _process(os.getpid()).memory_info().rss
    return int(pages(0).split(None, 2)[1]) * mmap.PAGESIZE


@functools.lru_cache(maxsize=1)
def _process(pid: int) -> psutil.Process:
    # By pid: a handle that a fork inherited would go on reading the parent.
    import psutil

    return psutil.Process(pid)


class PeakRss:
    """Peak of the resident set, in MiB, absolute and above the start.

    The process has one mark, and an inner block needs it reset. So every start and stop first
    credits the peak so far to all open blocks: each knows its own peak, nested or not.
    """

    def __init__(self) -> None:
        self._exact = has_mark()
        self._before = 0
        self._peak = 0

    def start(self) -> None:
        """Begins a peak of its own."""
        with _lock:
            if self._exact:
                if _open:
                    _credit(read_mark())
                reset_mark()
            self._before = self._peak = resident_bytes()
            _open.append(self)
        if not self._exact:
            _sampler.hold()

    def stop(self) -> list[Reading]:
        """The peak since `start`."""
        if not self._exact:
            _sampler.release()
        with _lock:
            try:
                _credit(read_mark() if self._exact else resident_bytes())
            finally:
                _open.remove(self)
        peak, risen = self._peak, self._peak - self._before
        return _PEAK.readings(peak / 2**20, risen / 2**20, not self._exact)

    def credit(self, peak: int) -> None:
        """Raises this block's peak to `peak` bytes if that is higher."""
        self._peak = max(self._peak, peak)


_lock = threading.Lock()
_open: list[PeakRss] = []


def _credit(peak: int) -> None:
    for window in _open:
        window.credit(peak)


def has_mark() -> bool:
    """Whether the kernel keeps a mark that this process may reset: Linux without strict sandbox."""
    # The first call in a process resets it.
    return _switch(os.getpid()) is not None


def reset_mark() -> None:
    """Lowers the mark to the resident set size of this moment."""
    # `ru_maxrss` of the process follows the mark, so from here on it too says the peak since then.
    # It is an OSError if `has_mark` is false, or the kernel refuses.
    switch = _switch(os.getpid())
    if switch is None:
        raise OSError("this process cannot reset VmHWM; ask has_mark() first")
    os.pwrite(switch, _RESET, 0)


def read_mark() -> int:
    """The largest resident set since `reset_mark`, in bytes; an OSError where there is no mark."""
    status = base.reader(_STATUS)
    found = b"" if status is None else status(0).partition(_MARK)[2]
    if not found:
        raise OSError(f"{_STATUS} has no {_MARK.decode()} line; ask has_mark() first")
    return int(found.split(None, 1)[0]) * 1024


@functools.cache
def _switch(_pid: int) -> int | None:
    # By pid, as every file of /proc/self that stays open.
    try:
        switch = os.open("/proc/self/clear_refs", os.O_WRONLY)
    except OSError:
        return None
    try:
        os.pwrite(switch, _RESET, 0)
        read_mark()
    except OSError:
        os.close(switch)
        return None
    return switch


class Sampler:
    """Calls a function at intervals, in one thread for all who want it.

    Between wishes the thread waits and costs nothing: starting one per block would cost more than
    most of the blocks' collectors together.
    """

    def __init__(
        self, what: str, sample: Callable[[], None], *, interval_s: float = INTERVAL_S
    ) -> None:
        """Prepares to call `sample`, `interval_s` seconds after it returned; starts nothing."""
        # It must be quick, because it holds Python's lock. `what` follows "could not" in the log.
        self._what = what
        self._sample = sample
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._wishes = 0
        self._thread: threading.Thread | None = None

    def hold(self) -> None:
        """Has the function called from now on, until as many `release` as `hold` have come."""
        with self._lock:
            self._wishes += 1
            # A forked process inherits the object but not the thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name=self._what, daemon=True)
                self._thread.start()
            self._wanted.set()

    def release(self) -> None:
        """Takes one `hold` back; one last call may follow."""
        with self._lock:
            self._wishes -= 1
            if not self._wishes:
                self._wanted.clear()

    def _run(self) -> None:
        while self._wanted.wait():
            time.sleep(self._interval_s)
            observers.attempt(self._what, self._sample, None)


def _sample() -> None:
    with _lock:
        _credit(resident_bytes())


_sampler = Sampler("sample the resident set", _sample)

_level = functools.partial(Metric, better="lower", collector="process_state")
RSS = _level(
    name="7_memory/process_rss_mb",
    unit="MiB",
    description="Resident set size of the process when the block ended",
)
ANON = _level(
    name="7_memory/cgroup_anon_mb",
    unit="MiB",
    description=(
        "Anonymous memory of the control group when the block ended (`anon` of memory.stat), of "
        "all processes in it; the page cache of checkpoints, which the group's total has, is not"
    ),
)
OPEN_FILES = _level(
    name="7_memory/process_open_files_count",
    unit="count",
    description="File descriptors that the process had open when the block ended",
)
THREADS = _level(
    name="7_memory/process_threads_count",
    unit="count",
    description="Threads of the process when the block ended",
)
METRICS = (RSS_GROWTH, *_PEAK.metrics, RSS, ANON, OPEN_FILES, THREADS)

_RSS = MetricGroup(RSS)
_COUNTS = MetricGroup(OPEN_FILES, THREADS)
_ANON = MetricGroup(ANON)
_FILES = Path("/proc/self/fd")
_TASKS = Path("/proc/self/task")
_NAMES = {b"anon", b"rss"}
"""Its name in version 2 of control groups, and in version 1."""


class ProcessState:
    """Levels of the process when a block ends; those that the kernel does not tell are left out."""

    def start(self) -> None:
        """Needs nothing of the time before."""

    def stop(self) -> list[Reading]:
        """The levels now."""
        found = _RSS.readings(resident_bytes() / 2**20)
        if _FILES.is_dir():
            # The listing of descriptors holds one itself.
            found += _COUNTS.readings(_entries(_FILES) - 1, _entries(_TASKS))
        anon = _anonymous_bytes()
        return found if anon is None else [*found, *_ANON.readings(anon / 2**20)]


def _entries(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())


def _anonymous_bytes() -> int | None:
    path = _stat_file(os.getpid())
    read = None if path is None else reader(path)
    for line in (b"" if read is None else read(0)).splitlines():
        name, _, value = line.partition(b" ")
        if name in _NAMES:
            return int(value)
    return None


@functools.lru_cache(maxsize=1)
def _stat_file(_pid: int) -> str | None:
    return group_file("stat")
