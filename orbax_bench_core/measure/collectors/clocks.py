"""Collector `cpu`: processor time of the process and of its children."""

from __future__ import annotations

import resource
from collections.abc import Sequence

from orbax_bench_core.measure.collectors.base import Reading
from orbax_bench_core.measure.definition import Metric

USER = Metric(
    name="0_basics/cpu_user_s",
    unit="s",
    better="lower",
    description="Processor time of all threads of the process, in its own code",
    collector="cpu",
)
SYSTEM = Metric(
    name="0_basics/cpu_system_s",
    unit="s",
    better="lower",
    description="Processor time of all threads of the process, in the kernel",
    collector="cpu",
)
TOTAL = Metric(
    name="0_basics/cpu_s",
    unit="s",
    better="lower",
    description=(
        "cpu_user_s + cpu_system_s; more than time_s when threads ran side by side. Includes what "
        "measuring inner blocks took"
    ),
    collector="cpu",
)
CHILDREN = Metric(
    name="0_basics/cpu_children_s",
    unit="s",
    better="lower",
    description="Processor time of child processes that ended, and were waited for, in the block",
    collector="cpu",
)
CPU_METRICS = (TOTAL, USER, SYSTEM, CHILDREN)


class Cpu:
    """Processor seconds, end less start.

    From getrusage, because os.times counts in hundredths of a second.
    """

    def __init__(self) -> None:
        self._user = self._system = self._children = 0.0

    def start(self) -> None:
        """Reads the processor times."""
        self._user, self._system, self._children = _read()

    def stop(self) -> list[Reading]:
        """The processor time since `start`."""
        user, system, children = _read()
        user, system = user - self._user, system - self._system
        return [
            Reading(TOTAL.name, user + system, TOTAL.unit),
            Reading(USER.name, user, USER.unit),
            Reading(SYSTEM.name, system, SYSTEM.unit),
            Reading(CHILDREN.name, children - self._children, CHILDREN.unit),
        ]


def _read() -> tuple[float, float, float]:
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime, own.ru_stime, children.ru_utime + children.ru_stime


TIME = Metric(
    name="0_basics/time_s",
    unit="s",
    better="lower",
    description="Wall-clock time of the operation alone, without any cost of measuring it",
    collector="time",
)
BYTES = Metric(
    name="5_inventory/operation_bytes",
    unit="bytes",
    better="none",
    description="Bytes that the operation moved, as its author stated them",
    collector="time",
)
THROUGHPUT = Metric(
    name="4_throughput/operation_gbps",
    unit="GiB/s",
    better="higher",
    description="operation_bytes / 2^30 / time_s",
    collector="time",
)
CLOCK_METRICS = (TIME, BYTES, THROUGHPUT)


def readings(seconds: float, num_bytes: int | None, keys: Sequence[str]) -> list[Reading]:
    """What a block's clock gives.

    Args:
        seconds: Time of the operation, in seconds.
        num_bytes: Bytes that the operation moved; None when its author did not say.
        keys: The block's collectors; `time_s` is given when `time` is among them.

    Returns:
        The time, and with `num_bytes` also bytes and throughput. An operation shorter than the
        resolution of the clock has no throughput.
    """
    found = [Reading(TIME.name, seconds, TIME.unit)] if "time" in keys else []
    if num_bytes is not None:
        found.append(Reading(BYTES.name, float(num_bytes), BYTES.unit))
        if seconds > 0:
            rate = num_bytes / 2**30 / seconds
            found.append(Reading(THROUGHPUT.name, rate, THROUGHPUT.unit))
    return found
