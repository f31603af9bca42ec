"""Collector `rss`: how much the resident memory of the process grew."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from orbax_bench_core.measure.collectors.base import Reading
from orbax_bench_core.measure.definition import Metric

if TYPE_CHECKING:
    import psutil

RSS = Metric(
    name="0_basics/host_rss_diff_mb",
    unit="MiB",
    better="lower",
    description="Resident set size at the end less that at the start; not a peak, may be negative",
    collector="rss",
)
METRICS = (RSS,)


class Rss:
    """Resident set size of this process, end less start, in MiB."""

    def __init__(self) -> None:
        self._process = _process(os.getpid())
        self._before = 0

    def start(self) -> None:
        """Reads the resident set size."""
        self._before = self._process.memory_info().rss

    def stop(self) -> list[Reading]:
        """The growth since `start`."""
        grown = self._process.memory_info().rss - self._before
        return [Reading(RSS.name, grown / 2**20, RSS.unit)]


@functools.lru_cache(maxsize=1)
def _process(pid: int) -> psutil.Process:
    # By pid: a handle that a fork inherited would go on reading the parent.
    import psutil

    return psutil.Process(pid)
