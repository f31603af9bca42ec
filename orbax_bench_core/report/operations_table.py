"""The operations of a run as every report shows them: one table per point, and remarks on it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Final

from orbax_bench_core.limits.share import LIMIT_HEADINGS, OperationLimits, limit_cells
from orbax_bench_core.measure.interference import BLOCKED, LOST, LOST_STEPS
from orbax_bench_core.report.text import (
    OPERATION_HEADINGS,
    operation_cells,
    seconds,
    straggler_sentence,
)
from orbax_bench_core.results.summary import OperationSummary, RunSummary

RunLimits = Mapping[tuple[str, str], OperationLimits]
"""How near an operation comes to its limits, by point id and operation."""

NO_LIMITS: Final[RunLimits] = {}

LIMITS_LEGEND = (
    "Limit: what the machine must do at the least for the same bytes, and its share of the time; "
    "over 100 % moves fewer bytes, as data compress. vs TensorStore: time over that of writing or "
    "reading the same arrays without Orbax."
)
"""What the columns on limits mean, for below a table."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A sentence on a point.

    Attributes:
        text: The sentence.
        serious: Whether it says that a number is not what it claims to be.
    """

    text: str
    serious: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PointTable:
    """One point.

    Attributes:
        point_id: Its id.
        name: Its name.
        operations: Its operations.
        rows: One row of cells per operation, with the columns of `headings`.
        remarks: What else there is to say.
    """

    point_id: str
    name: str
    operations: tuple[OperationSummary, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[Remark, ...]


def headings(limits: RunLimits) -> tuple[str, ...]:
    """Returns the columns of a run's tables; those on limits only where limits were measured."""
    return (*OPERATION_HEADINGS, *LIMIT_HEADINGS) if limits else OPERATION_HEADINGS


def point_tables(summary: RunSummary, limits: RunLimits) -> list[PointTable]:
    """Returns one table per point that has an operation.

    Args:
        summary: What the run found.
        limits: How near its operations come to their limits; empty when none were measured.
    """
    costs = _training_costs(summary)
    return [
        _point_table(point_id, name, tuple(operations), limits, costs)
        for (point_id, name), operations in itertools.groupby(
            summary.operations, key=lambda found: (found.time.point_id, found.time.point)
        )
    ]


def _training_costs(summary: RunSummary) -> dict[tuple[str, str], str]:
    """Returns what a save cost the training that went on, by point id and operation."""
    medians = {
        (metric.point_id, metric.operation, metric.metric): metric.median
        for metric in summary.metrics
    }
    return {
        (point_id, operation): (
            f"{operation}: cost the training {seconds(lost)} "
            f"({medians[point_id, operation, LOST_STEPS.name]:.3g} steps), of which it stood still "
            f"for {seconds(medians[point_id, operation, BLOCKED.name])}"
        )
        for (point_id, operation, metric), lost in medians.items()
        if metric == LOST.name
    }


def _point_table(
    point_id: str,
    name: str,
    operations: tuple[OperationSummary, ...],
    limits: RunLimits,
    costs: Mapping[tuple[str, str], str],
) -> PointTable:
    rows, remarks = [], []
    for operation in operations:
        limit = limits.get((point_id, operation.time.operation))
        cells = operation_cells(operation)
        rows.append((*cells, *limit_cells(limit)) if limits else cells)
        if operation.flag is not None:
            remarks.append(Remark(text=operation.flag, serious=True))
        if limit is not None and limit.first_touch:
            said = f"{operation.time.operation}: {limit.first_touch}"
            remarks.append(Remark(text=said, serious=False))
        cost = costs.get((point_id, operation.time.operation))
        if cost is not None:
            remarks.append(Remark(text=cost, serious=False))
        if operation.straggler is not None:
            said = straggler_sentence(operation.time.operation, operation.straggler)
            remarks.append(Remark(text=said, serious=False))
    return PointTable(
        point_id=point_id,
        name=name,
        operations=operations,
        rows=tuple(rows),
        remarks=tuple(remarks),
    )
