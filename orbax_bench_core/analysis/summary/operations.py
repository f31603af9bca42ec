"""Table of the operations of a run, and lines on its points, for the page and the terminal."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from orbax_bench_core.analysis.summary.model import PointStatus
from orbax_bench_core.analysis.summary.tables import ExtraColumns, PointTable, headings
from orbax_bench_core.document import (
    Column,
    Element,
    Group,
    Paragraph,
    Role,
    Row,
    Span,
    Table,
    count,
)
from orbax_bench_core.records import OverlapFinder


def operations_table(
    tables: Sequence[PointTable], extra: ExtraColumns, kept: Container[str] | None = None
) -> Table:
    """Returns the operations of all points; of the columns only those `kept`, None for all."""
    every = headings(extra)
    operation, *numbers = (heading for heading in every if kept is None or heading in kept)

    def cells(row: Sequence[str]) -> Iterator[str]:
        return (
            cell for heading, cell in zip(every, row, strict=True) if not kept or heading in kept
        )

    groups = (
        Group(
            label=(Span(table.name, strong=True), " ", Span(table.point_id, "dim")),
            keys=(Span(table.name), Span(table.point_id)),
            rows=tuple(Row(tuple(map(Span, cells(row)))) for row in table.rows),
            remarks=tuple(
                Paragraph(Span(said.text), mark=Span("!", "bad"), indent=2)
                if said.serious
                else Paragraph(Span(said.text), "dim", indent=2)
                for said in table.remarks
            ),
        )
        for table in tables
    )
    return Table(
        (Column(operation), *(Column(heading, "number") for heading in numbers)),
        groups=tuple(groups),
        keys=("point", "id"),
        empty="No repeat has passed.",
    )


def retried_lines(points: Sequence[PointStatus]) -> tuple[Element, ...]:
    """Returns a line for each point of which repeats passed only when they were tried again."""
    return tuple(
        wrapped("retried:", "unsure", f"{point.point} {point.point_id}: {_retried(point)}")
        for point in points
        if point.retried
    )


def _retried(point: PointStatus) -> str:
    return (
        f"{point.retried} of {point.passed} repeats passed only when they were tried again, and "
        f"are among these times; the first attempt of the first: {point.retried_for}"
    )


def shared_warning(points: Sequence[PointStatus]) -> tuple[Element, ...]:
    """Returns what stands above the times of a run whose repeats were not all alone."""
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
        f"Traced: {count(found, 'warm-up')}, in no figure, since a trace makes operations slower; "
        "the traces are in tensorboard/"
    )


def wrapped(mark: str, role: Role, text: str) -> Paragraph:
    """Returns a paragraph with a mark before it, which a terminal folds."""
    return Paragraph(Span(text), mark=Span(mark, role), fold="wrapped")
