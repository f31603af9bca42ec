"""The TensorBoard run of one host of one point: what it measured, a step per repeat."""

from __future__ import annotations

from collections.abc import Iterable

from orbax_bench_core.measure.known_metrics import lookup
from orbax_bench_core.records.record import Record
from orbax_bench_core.report.tensorboard.log import Log, Scalar


def host_log(records: Iterable[Record], created: float) -> Log:
    """Returns every sample of the repeats that passed, and the error of each that did not.

    Args:
        records: The records of one host for the measured repeats of one point, in order.
        created: When the run began, in seconds since the epoch.
    """
    log = Log(created)
    for record in records:
        if record.status == "passed":
            scalars = (Scalar(s.key, s.value, _description(s.metric)) for s in record.samples)
            log.scalars(scalars, step=record.repeat, wall_time=record_end(record))
        elif record.error is not None:
            tag = "error" if record.status == "failed" else record.status
            error = record.error
            text = f"**{error.type}**: {error.message}\n\n```\n{error.traceback}\n```"
            log.text(tag, text, step=record.repeat, wall_time=record_end(record))
    return log


def record_end(record: Record) -> float:
    """Returns when a repeat ended, in seconds since the epoch."""
    return record.started_at.timestamp() + record.duration_s


def _description(metric: str) -> str:
    try:
        known = lookup(metric)
    except KeyError:
        return ""
    return f"{known.description} [{known.unit}]" if known.unit else known.description
