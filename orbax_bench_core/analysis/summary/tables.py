"""Tables of a run's operations, and lines on its points, for the page and the terminal."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Final

from orbax_bench_core import document as doc
from orbax_bench_core import measure
from orbax_bench_core.analysis.summary.aggregate import PEAK, READ, WRITTEN
from orbax_bench_core.analysis.summary.hosts import Straggler
from orbax_bench_core.analysis.summary.model import OperationSummary, PointStatus, RunSummary
from orbax_bench_core.records import OverlapFinder


def operations_table(tables: Sequence[PointTable], extra: ExtraColumns) -> doc.Table:
    """Returns the operations of all points."""
    operation, *numbers = headings(extra)
    groups = (
        doc.Group(
            label=(doc.Span(table.name, strong=True), " ", doc.Span(table.point_id, "dim")),
            keys=(doc.Span(table.name), doc.Span(table.point_id)),
            rows=tuple(doc.Row(tuple(map(doc.Span, row))) for row in table.rows),
            remarks=tuple(
                doc.Paragraph(doc.Span(said.text), mark=doc.Span("!", "bad"), indent=2)
                if said.serious
                else doc.Paragraph(doc.Span(said.text), "dim", indent=2)
                for said in table.remarks
            ),
        )
        for table in tables
    )
    return doc.Table(
        (doc.Column(operation), *(doc.Column(heading, "number") for heading in numbers)),
        groups=tuple(groups),
        keys=("point", "id"),
        empty="No repeat has passed.",
    )


def retried_lines(points: Sequence[PointStatus]) -> tuple[doc.Element, ...]:
    """Returns a line for each point of which repeats passed only when they were tried again."""
    return tuple(
        wrapped(
            "retried:",
            "unsure",
            f"{point.point} {point.point_id}: {point.retried} of {point.passed} repeats passed "
            "only when they were tried again, and are among these times; the first attempt of the "
            f"first: {point.retried_for}",
        )
        for point in points
        if point.retried
    )


def shared_warning(points: Sequence[PointStatus]) -> tuple[doc.Element, ...]:
    """Returns the text above the times of a run whose repeats were not all alone."""
    said = OverlapFinder.warning(
        sum(point.not_alone for point in points), "comparisons of these times"
    )
    return (wrapped("!", "bad", f"{said}."),) if said else ()


def not_alone(point: PointStatus) -> str:
    """Returns how many repeats of a point were measured beside another point of the run."""
    return (
        f"{point.not_alone} of {point.passed} repeats were not alone: another point of the run was "
        "measured on the same machine meanwhile, and both have part in these times"
    )


def traced_line(points: Sequence[PointStatus]) -> str:
    """Returns how many repeats were traced, and that no figure has them; empty without any."""
    found = sum(point.traced for point in points)
    if not found:
        return ""
    return (
        f"Traced: {doc.count(found, 'warm-up')}, in no figure, since a trace makes operations "
        "slower; the traces are in tensorboard/"
    )


def wrapped(mark: str, role: doc.Role, text: str) -> doc.Paragraph:
    """Returns a paragraph with a mark before it, which a terminal folds."""
    return doc.Paragraph(doc.Span(text), mark=doc.Span(mark, role), fold="wrapped")


OPERATION_HEADINGS = ("operation", "n", "median", "spread", "min", "max", "GiB/s")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExtraColumns:
    """Columns that another room adds to the tables of operations."""

    headings: tuple[str, ...] = ()  # their headings; empty when there is nothing to add
    # their cells by point id and operation; dashes stand where there are none
    cells: Mapping[tuple[str, str], tuple[str, ...]] = dataclasses.field(default_factory=dict)
    # a sentence on an operation, by point id and operation
    notes: Mapping[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    legend: str = ""  # what the columns mean, for below a table


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
    """A sentence on a point."""

    text: str  # the sentence
    serious: bool  # whether it says that a number is not what it claims to be
    operation: str  # the operation that it is about


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PointTable:
    """One point."""

    point_id: str  # its id
    name: str
    operations: tuple[OperationSummary, ...]
    # one row of cells per operation, with the columns of `headings`
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[Remark, ...]  # what else there is to say


def medians_of(summary: RunSummary) -> dict[tuple[str, str], dict[str, float]]:
    """Returns the median of each metric, by point id and operation."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for metric in summary.metrics:
        found.setdefault((metric.point_id, metric.operation), {})[metric.metric] = metric.median
    return found


def with_measured(summary: RunSummary, extra: ExtraColumns) -> ExtraColumns:
    """Returns columns with memory and I/O of the operations before them, where these are known."""
    medians = {
        key: found
        for key, found in medians_of(summary).items()
        if not found.keys().isdisjoint((PEAK, READ, WRITTEN))
    }
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
    memory = doc.num_bytes(medians[PEAK] * _MIB) if PEAK in medians else "–"
    moved = [(medians[each], mark) for each, mark in _DIRECTIONS.items() if each in medians]
    if not moved:
        return memory, "–"
    most, mark = max(moved)
    return memory, f"{doc.num_bytes(most)} {mark}" if most else doc.num_bytes(0)


def headings(extra: ExtraColumns) -> tuple[str, ...]:
    """Returns the columns of a run's tables."""
    return (*OPERATION_HEADINGS, *extra.headings)


def point_tables(summary: RunSummary, extra: ExtraColumns) -> list[PointTable]:
    """Returns one table per point that has an operation."""
    costs = _training_costs(summary)
    return [
        _point_table(point_id, name, tuple(operations), extra, costs)
        for (point_id, name), operations in itertools.groupby(
            summary.operations,
            key=lambda operation: (operation.time.point_id, operation.time.point),
        )
    ]


def _training_costs(summary: RunSummary) -> dict[tuple[str, str], str]:
    """Returns the cost of saves to the training that went on, or its slowest steps."""
    said = {}
    for (point_id, operation), found in medians_of(summary).items():
        if measure.LOST.name in found:
            said[point_id, operation] = (
                f"{operation}: cost the training {doc.seconds(found[measure.LOST.name])} "
                f"({found[measure.LOST_STEPS.name]:.3g} steps), of which it stood still for "
                f"{doc.seconds(found[measure.BLOCKED.name])}"
            )
        if measure.STEP_P99.name in found:
            said[point_id, operation] = (
                f"{operation}: of {found[measure.STEPS.name]:.0f} steps, the median took "
                f"{doc.seconds(found[measure.STEP_MEDIAN.name])}, the 99th percentile "
                f"{doc.seconds(found[measure.STEP_P99.name])}, the longest "
                f"{doc.seconds(found[measure.STEP_MAX.name])}; "
                f"{doc.percent(found[measure.SAVE_SHARE.name])} of their time went beyond the "
                "median"
            )
    return said


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
        about = operation.time.operation
        key = (point_id, about)
        rows.append((*operation_cells(operation), *extra.cells.get(key, nothing)))
        said = (
            (operation.flag, True),
            (operation.store and f"{about}: {operation.store}", True),
            (f"{about}: {extra.notes[key]}" if key in extra.notes else None, False),
            (costs.get(key), False),
            (operation.straggler and straggler_sentence(about, operation.straggler), False),
        )
        remarks += [
            Remark(text=text, serious=serious, operation=about) for text, serious in said if text
        ]
    return PointTable(
        point_id=point_id,
        name=name,
        operations=operations,
        rows=tuple(rows),
        remarks=tuple(remarks),
    )


def operation_cells(operation: OperationSummary) -> tuple[str, ...]:
    """Returns one table row, with the columns of `OPERATION_HEADINGS`."""
    time = operation.time
    return (
        f"{time.operation} ({operation.cache})" if operation.cache else time.operation,
        str(time.n),
        doc.seconds(time.median),
        doc.percent(time.spread),
        doc.seconds(time.minimum),
        doc.seconds(time.maximum),
        "–" if operation.throughput is None else doc.digits(operation.throughput),
    )


def straggler_sentence(operation: str, straggler: Straggler) -> str:
    """Returns which host the others waited for in an operation, and in which stage."""
    said = (
        f"{operation}: host {straggler.host} was slowest in {straggler.slowest} of "
        f"{straggler.repeats} repeats; the slowest host took {doc.seconds(straggler.excess_s)} "
        "more than the median host"
    )
    if straggler.stage is None:
        return said
    share = min(1.0, straggler.stage_excess_s / straggler.excess_s) if straggler.excess_s else 1.0
    return (
        f"{said}, {doc.percent(share)} of it in {straggler.stage} "
        f"(+{doc.seconds(straggler.stage_excess_s)})"
    )
