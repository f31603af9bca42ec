"""Time of a block: its wall clock with the throughput that follows, and collector `cpu`."""

import functools
import resource
from collections.abc import Sequence

from orbax_bench_core.measure import definition
from orbax_bench_core.measure.collectors.base import Difference, MetricGroup, Reading
from orbax_bench_core.measure.definition import Metric

_clock = functools.partial(Metric, collector="time")
TIME = _clock(
    name=definition.TIME,
    unit="s",
    better="lower",
    description="Wall-clock time of the operation alone, without any cost of measuring it",
)
BYTES = _clock(
    name=definition.BYTES,
    unit="bytes",
    better="none",
    description="Bytes that the operation moved, as its author stated them",
)
THROUGHPUT = _clock(
    name="4_throughput/operation_gbps",
    unit="GiB/s",
    better="higher",
    description="operation_bytes / 2^30 / time_s",
)

_processor_time = functools.partial(Metric, unit="s", better="lower", collector="cpu")
TOTAL = _processor_time(
    name=definition.CPU,
    description=(
        "cpu_user_s + cpu_system_s, without what measuring inner blocks took; more than time_s "
        "when threads ran side by side"
    ),
)
USER = _processor_time(
    name="0_basics/cpu_user_s",
    description="Processor time of all threads of the process, in its own code",
)
SYSTEM = _processor_time(
    name="0_basics/cpu_system_s",
    description="Processor time of all threads of the process, in the kernel",
)
CHILDREN = _processor_time(
    name="0_basics/cpu_children_s",
    description="Processor time of child processes that ended, and were waited for, in the block",
)
_CPU = MetricGroup(TOTAL, USER, SYSTEM, CHILDREN)
METRICS = (TIME, BYTES, THROUGHPUT, *_CPU.metrics)


def clock_readings(seconds: float, num_bytes: int | None, keys: Sequence[str]) -> list[Reading]:
    """What a block's clock gives: the time if `time` is asked for, bytes and throughput."""
    # An operation shorter than the resolution of the clock has no throughput.
    found = [Reading(TIME.name, seconds, TIME.unit)] if "time" in keys else []
    if num_bytes is not None:
        found.append(Reading(BYTES.name, float(num_bytes), BYTES.unit))
        if seconds > 0:
            rate = num_bytes / 2**30 / seconds
            found.append(Reading(THROUGHPUT.name, rate, THROUGHPUT.unit))
    return found


class Cpu(Difference[tuple[float, float, float]]):
    """Processor seconds, end less start.

    From getrusage, because os.times counts in hundredths of a second.
    """

    def _read(self) -> tuple[float, float, float]:
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return own.ru_utime, own.ru_stime, children.ru_utime + children.ru_stime

    def _compare(
        self, before: tuple[float, float, float], after: tuple[float, float, float]
    ) -> list[Reading]:
        user, system = after[0] - before[0], after[1] - before[1]
        return _CPU.readings(user + system, user, system, after[2] - before[2])
