"""Collector `rss`: how much the resident memory of the process grew."""

from __future__ import annotations

from orbax_bench_core.measure.collectors.base import Reading
from orbax_bench_core.measure.collectors.resident import resident_bytes
from orbax_bench_core.measure.definition import Metric

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
        self._before = 0

    def start(self) -> None:
        """Reads the resident set size."""
        self._before = resident_bytes()

    def stop(self) -> list[Reading]:
        """The growth since `start`."""
        return [Reading(RSS.name, (resident_bytes() - self._before) / 2**20, RSS.unit)]
