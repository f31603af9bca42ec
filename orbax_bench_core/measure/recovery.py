"""Metrics of a recovery after a kill: steps lost, and what the kill left behind."""

from __future__ import annotations

from typing import Final

from orbax_bench_core.measure.definition import Metric

_COLLECTOR: Final = "training_job"

STEPS_LOST: Final = Metric(
    name="7_overhead/steps_lost_count",
    unit="count",
    better="lower",
    description="Training steps that were done before the kill, and are not in what was restored",
    collector=_COLLECTOR,
)
UNCOMMITTED: Final = Metric(
    name="7_overhead/uncommitted_count",
    unit="count",
    better="lower",
    description="Directories of saves that were never committed, found after the kill",
    collector=_COLLECTOR,
)
PEERS_NOTICE: Final = Metric(
    name="7_overhead/peers_notice_s",
    unit="s",
    better="lower",
    description=(
        "Time until another process that trained along ended by itself, left alone; absent where "
        "there was none, or none ended in the time that it was given"
    ),
    collector=_COLLECTOR,
)
METRICS: Final = (STEPS_LOST, UNCOMMITTED, PEERS_NOTICE)
