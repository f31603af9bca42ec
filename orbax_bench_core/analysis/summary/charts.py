"""Charts of a run: every operation over the points, and where its time went; for HTML alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from orbax_bench_core.analysis.summary.model import RunSummary
from orbax_bench_core.analysis.summary.plots import (
    ChartRow,
    repeats_group,
    stage_elements,
)
from orbax_bench_core.analysis.summary.series_names import short_names, varying
from orbax_bench_core.analysis.summary.tables import OPERATION_HEADINGS, ExtraColumns, PointTable
from orbax_bench_core.document import (
    Column,
    Details,
    Element,
    Filter,
    Heading,
    Paragraph,
    Row,
    Section,
    Span,
    Table,
    count,
)
from orbax_bench_core.records import RunInfo, Series

_MOST_ROWS: Final = 1000
"""Points of an operation on a page: one of ten thousand could not be opened."""

_CHARTED: Final = ("n", "median", "spread", "GiB/s")
_HOW_TO_READ: Final = (
    "Each dot is a repeat, on its slowest host; the band is the middle half of them, the stroke "
    "the median, on a log scale per operation. The spread is the interquartile range over the "
    "median; GiB/s is all bytes over all seconds. The fastest point is first; a heading sorts."
)
_STAGES: Final = (
    "Medians of the stages that Orbax times, laid end to end; the stroke is the median of the "
    "whole. Stages may run side by side: then they reach beyond it. What no stage has is elsewhere."
)


def charts(
    info: RunInfo, summary: RunSummary, tables: Sequence[PointTable], extra: ExtraColumns
) -> tuple[Element, ...]:
    """Returns every operation over the points, with a dot per repeat, and where its time went."""
    series = [each for entry in info.expansion.points for each in Series.all_of(entry)]
    shown = {table.point_id for table in tables}
    series = [each for each in series if each.id in shown]
    short = short_names(series)
    rows = _chart_rows(tables, short)
    columns = (
        Column("point"),
        *(Column(heading, "number") for heading in (*_CHARTED, *extra.headings)),
    )
    groups = (
        [repeats_group(operation, found) for operation, found in rows.items()]
        if len(tables) > 1
        else [repeats_group(table.name, _by_operation(rows)) for table in tables]
    )
    empty = "No repeat has passed."
    table = Table(columns, groups=tuple(groups), plots="repeats", sorts=True, empty=empty)
    stages = tuple(stage_elements(summary, rows))
    kept = {row.key for found in rows.values() for row in found}
    left = len(series) - len(kept)
    series = [each for each in series if each.id in kept]
    names = {each.id: f"{each.name} {each.id}" for each in series}
    more = f"{count(left, 'more point')} of this run, slower ones, are in summary.csv alone."
    bar = (Filter("points", names, varying(series)),) if len(series) > 1 else ()
    return (
        *bar,
        Heading("Time per operation"),
        Paragraph(_HOW_TO_READ, "dim"),
        *((Paragraph(more),) if left else ()),
        table,
        *((Paragraph(extra.legend, "dim"),) if extra.legend else ()),
        Section("Where the time went", stages, lead=(Paragraph(_STAGES, "dim"),)),
        *((_points(series, short),) if len(series) > 1 else ()),
    )


def _points(series: Sequence[Series], names: Mapping[str, str]) -> Element:
    """Returns the names that the page leaves short, in full and with the ids of their records."""
    rows = (
        Row((Span(names[each.id]), Span(each.name), Span(each.id, code=True)), key=each.id)
        for each in series
    )
    columns = (Column("point"), Column("name"), Column("id", "fixed"))
    return Details("Names and ids of the points", (Table(columns, tuple(rows)),))


def _chart_rows(
    tables: Sequence[PointTable], names: Mapping[str, str]
) -> dict[str, list[ChartRow]]:
    """Returns the rows of each operation, the fastest first."""
    rows: dict[str, list[ChartRow]] = {}
    for table in tables:
        for operation, cells in zip(table.operations, table.rows, strict=True):
            name = operation.time.operation
            row = ChartRow(
                key=table.point_id,
                label=names[table.point_id].replace(",", ", "),
                operation=operation,
                cells=tuple(_charted(cells)),
                flags=_said(table, name, serious=True),
                notes=_said(table, name, serious=False),
            )
            rows.setdefault(name, []).append(row)
    for found in rows.values():
        found.sort(key=lambda row: row.operation.time.median)
        del found[_MOST_ROWS:]
    return rows


def _said(table: PointTable, operation: str, *, serious: bool) -> tuple[str, ...]:
    found = (said for said in table.remarks if said.operation == operation)
    return tuple(said.text for said in found if said.serious == serious)


def _charted(cells: Sequence[str]) -> Iterator[str]:
    """Yields the cells of a row that stand beside its plot, which has the fastest and slowest."""
    names = (*OPERATION_HEADINGS, *(None for _ in cells[len(OPERATION_HEADINGS) :]))
    for name, cell in zip(names, cells, strict=True):
        if name is None or name in _CHARTED:
            yield cell


def _by_operation(rows: Mapping[str, Sequence[ChartRow]]) -> list[ChartRow]:
    """Returns the rows of a single point, which are told apart by their operations."""
    return [
        dataclasses.replace(row, label=operation)
        for operation, found in rows.items()
        for row in found
    ]
