"""Collector `rss`: growth of the resident set of the process within a block."""

from __future__ import annotations

import functools
import mmap
import os
from typing import TYPE_CHECKING

from orbax_bench_core.measure.collectors import base
from orbax_bench_core.measure.collectors.base import Difference, Reading
from orbax_bench_core.measure.definition import Metric

if TYPE_CHECKING:
    import psutil


RSS_GROWTH = Metric(
    name="0_basics/host_rss_diff_mb",
    unit="MiB",
    better="lower",
    description="Resident set size at the end less that at the start; not a peak, may be negative",
    collector="rss",
)
METRICS = (RSS_GROWTH,)


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
