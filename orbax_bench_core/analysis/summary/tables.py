"""Tables of operations: a row of cells for each, and what else there is to say of a point."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping
from typing import Final

from orbax_bench_core.analysis.summary.aggregate import PEAK, READ, WRITTEN
from orbax_bench_core.analysis.summary.hosts import Straggler
from orbax_bench_core.analysis.summary.model import OperationSummary, RunSummary
from orbax_bench_core.document import digits, num_bytes, percent, seconds
from orbax_bench_core.measure import (
    BLOCKED,
    LOST,
    LOST_STEPS,
    SAVE_SHARE,
    STEP_MAX,
    STEP_MEDIAN,
    STEP_P99,
    STEPS,
)

OPERATION_HEADINGS = ("operation", "n", "median", "spread", "min", "max", "GiB/s")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExtraColumns:
    """Columns that another room adds to the tables of operations.

    Attributes:
        headings: Their headings; empty when there is nothing to add.
        cells: Their cells by point id and operation; dashes stand where there are none.
        notes: A sentence on an operation, by point id and operation.
        legend: What the columns mean, for below a table.
    """

    headings: tuple[str, ...] = ()
    cells: Mapping[tuple[str, str], tuple[str, ...]] = dataclasses.field(default_factory=dict)
    notes: Mapping[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    legend: str = ""


NO_EXTRA: Final = ExtraColumns()

MEASURED: Final = ("memory", "I/O")
_MIB: Final = 2**20
_DIRECTIONS: Final = {READ: "r", WRITTEN: "w"}
_MEASURED_LEGEND: Final = (
    "Memory: the peak of the process during the operation; I/O: what it wrote to storage (w) or "
    "read from there (r), whichever is more; medians over repeats and hosts."
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A sentence on a point.

    Attributes:
        text: The sentence.
        serious: Whether it says that a number is not what it claims to be.
        operation: The operation that it is about.
    """

    text: str
    serious: bool
    operation: str


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


def with_measured(summary: RunSummary, extra: ExtraColumns) -> ExtraColumns:
    """Returns columns with memory and I/O of the operations before them, where these are known."""
    metrics = (PEAK, READ, WRITTEN)
    medians: dict[tuple[str, str], dict[str, float]] = {}
    for metric in summary.metrics:
        if metric.metric in metrics:
            found = medians.setdefault((metric.point_id, metric.operation), {})
            found[metric.metric] = metric.median
    if not medians:
        return extra
    nothing = ("–",) * len(extra.headings)
    cells = {
        key: (*_measured(medians.get(key, {})), *extra.cells.get(key, nothing))
        for key in {**medians, **extra.cells}
    }
    legend = " ".join(filter(None, [_MEASURED_LEGEND, extra.legend]))
    return dataclasses.replace(
        extra, headings=(*MEASURED, *extra.headings), cells=cells, legend=legend
    )


def _measured(medians: Mapping[str, float]) -> tuple[str, str]:
    """Returns the cells of memory and I/O."""
    memory = num_bytes(medians[PEAK] * _MIB) if PEAK in medians else "–"
    moved = [(medians[each], mark) for each, mark in _DIRECTIONS.items() if each in medians]
    if not moved:
        return memory, "–"
    most, mark = max(moved)
    return memory, f"{num_bytes(most)} {mark}" if most else num_bytes(0)


def headings(extra: ExtraColumns) -> tuple[str, ...]:
    """Returns the columns of a run's tables."""
    return (*OPERATION_HEADINGS, *extra.headings)


def point_tables(summary: RunSummary, extra: ExtraColumns) -> list[PointTable]:
    """Returns one table per point that has an operation."""
    costs = {**_training_costs(summary), **_tails(summary)}
    return [
        _point_table(point_id, name, tuple(operations), extra, costs)
        for (point_id, name), operations in itertools.groupby(
            summary.operations,
            key=lambda operation: (operation.time.point_id, operation.time.point),
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


def _tails(summary: RunSummary) -> dict[tuple[str, str], str]:
    """Returns what the slowest steps of a training took, by point id and operation."""
    medians = {
        (metric.point_id, metric.operation, metric.metric): metric.median
        for metric in summary.metrics
    }
    return {
        (point_id, operation): (
            f"{operation}: of {medians[point_id, operation, STEPS.name]:.0f} steps, the median "
            f"took {seconds(medians[point_id, operation, STEP_MEDIAN.name])}, the 99th percentile "
            f"{seconds(p99)}, the longest {seconds(medians[point_id, operation, STEP_MAX.name])}; "
            f"{percent(medians[point_id, operation, SAVE_SHARE.name])} of their time went beyond "
            "the median"
        )
        for (point_id, operation, metric), p99 in medians.items()
        if metric == STEP_P99.name
    }


def _point_table(
    point_id: str,
    name: str,
    operations: tuple[OperationSummary, ...],
    extra: ExtraColumns,
    costs: Mapping[tuple[str, str], str],
) -> PointTable:
    rows: list[tuple[str, ...]] = []
    remarks: list[Remark] = []
    nothing = ("–",) * len(extra.headings)
    for operation in operations:
        key = (point_id, operation.time.operation)
        say = functools.partial(_say, remarks, operation.time.operation)
        rows.append((*operation_cells(operation), *extra.cells.get(key, nothing)))
        if operation.flag is not None:
            say(operation.flag, serious=True)
        if operation.store:
            said = f"{operation.time.operation}: {operation.store}"
            say(said, serious=True)
        if key in extra.notes:
            said = f"{operation.time.operation}: {extra.notes[key]}"
            say(said, serious=False)
        if key in costs:
            say(costs[key], serious=False)
        if operation.straggler is not None:
            said = straggler_sentence(operation.time.operation, operation.straggler)
            say(said, serious=False)
    return PointTable(
        point_id=point_id,
        name=name,
        operations=operations,
        rows=tuple(rows),
        remarks=tuple(remarks),
    )


def _say(remarks: list[Remark], operation: str, text: str, *, serious: bool) -> None:
    remarks.append(Remark(text=text, serious=serious, operation=operation))


def operation_cells(operation: OperationSummary) -> tuple[str, ...]:
    """Returns one table row, with the columns of `OPERATION_HEADINGS`."""
    time = operation.time
    return (
        time.operation,
        str(time.n),
        seconds(time.median),
        percent(time.spread),
        seconds(time.minimum),
        seconds(time.maximum),
        "–" if operation.throughput is None else digits(operation.throughput),
    )


def straggler_sentence(operation: str, straggler: Straggler) -> str:
    """Returns which host the others waited for in an operation, and in which stage."""
    said = (
        f"{operation}: host {straggler.host} was slowest in {straggler.slowest} of "
        f"{straggler.repeats} repeats; the slowest host took {seconds(straggler.excess_s)} more "
        "than the median host"
    )
    if straggler.stage is None:
        return said
    return f"{said}, most of it in {straggler.stage} (+{seconds(straggler.stage_excess_s)})"
