"""Collector `page_faults`: how often memory had to be fetched or made."""

from __future__ import annotations

import resource

from orbax_bench_core.measure.collectors.base import Reading
from orbax_bench_core.measure.definition import Metric

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
METRICS = (MINOR, MAJOR)


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
