"""Collector `time`: what the block's own clock says."""

from __future__ import annotations

from collections.abc import Sequence

from orbax_bench_core.measure.collectors.base import Reading
from orbax_bench_core.measure.definition import Metric

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
METRICS = (TIME, BYTES, THROUGHPUT)


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
