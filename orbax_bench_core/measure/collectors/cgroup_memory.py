"""Collector `cgroup_memory`: the peak of the control group, which is what an OOM kill looks at."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path

from orbax_bench_core.measure.collectors import kernel_file
from orbax_bench_core.measure.collectors.base import Reading
from orbax_bench_core.measure.definition import Metric

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
METRICS = (PEAK, IS_BOUND)

_MEMBERSHIP = Path("/proc/self/cgroup")
_ROOT = Path("/sys/fs/cgroup")


class CgroupMemory:
    """The high-water mark of the control group's memory, in MiB; nothing without such a group."""

    def __init__(self) -> None:
        path = _peak_file(os.getpid())
        self._read = None if path is None else kernel_file.reader(path)
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
