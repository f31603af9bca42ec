"""Collector `process_state`: levels of the process at the moment when a block ends.

It is for soaks: what grows from save to save is a difference of levels, and a sum of differences
would miss what happens between blocks.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from orbax_bench_core.measure.collectors.base import MetricGroup, Reading, reader
from orbax_bench_core.measure.collectors.rss import resident_bytes
from orbax_bench_core.measure.definition import Metric
from orbax_bench_core.measure.free_memory import group_file

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
METRICS = (RSS, ANON, OPEN_FILES, THREADS)

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
            files, tasks = (sum(1 for _ in folder.iterdir()) for folder in (_FILES, _TASKS))
            found += _COUNTS.readings(files - 1, tasks)
        anon = _anonymous_bytes()
        return found if anon is None else [*found, *_ANON.readings(anon / 2**20)]


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
