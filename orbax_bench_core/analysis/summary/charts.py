"""Charts of a run: every repeat of an operation as a dot, and where its time went."""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from orbax_bench_core import document as doc
from orbax_bench_core.analysis.names import shortened
from orbax_bench_core.analysis.summary.aggregate import STAGES
from orbax_bench_core.analysis.summary.model import OperationSummary, RunSummary
from orbax_bench_core.analysis.summary.tables import (
    OPERATION_HEADINGS,
    ExtraColumns,
    PointTable,
    medians_of,
)
from orbax_bench_core.document import count
from orbax_bench_core.records import RunInfo, Series


def short_names(every: Sequence[Series]) -> dict[str, str]:
    """Returns the name of each series without what all of them share, by its id.

    The benchmark is named where there are several. No two names are equal.
    """
    return shortened(
        {each.id: f"{each.name.partition('[')[0]}[{each.point.label}]" for each in every}
    )


def varying(every: Sequence[Series]) -> dict[str, dict[str, str]]:
    """Returns the fields that differ between the series: name, then each id's value as text."""
    found: dict[str, dict[str, str]] = {}
    for series in every:
        for name, value in _values(series).items():
            found.setdefault(name, {})[series.id] = _text(value)
    return {
        name: {series.id: values.get(series.id, "–") for series in every}
        for name, values in found.items()
        if len(set(values.values())) > 1 or len(values) < len(every)
    }


def _values(series: Series) -> dict[str, Any]:
    point = series.point
    return {
        **({"arm": series.arm} if series.arm else {}),
        "benchmark": series.name.partition("[")[0],
        **point.options,
        "mesh": "none" if point.mesh is None else point.mesh.label,
        "checkpoint": point.checkpoint.label,
        "storage": point.storage or "run directory",
        "environment": "none" if point.environment is None else point.environment.name,
        "processes": point.processes,
        "cache": point.conditions.cache,
        "host memory": point.conditions.host_memory,
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_MOST_DOTS: Final = 60
_MOST_TOLD: Final = 12
_TONES: Final[tuple[doc.Tone, ...]] = ("c1", "c2", "c3", "c4", "c5", "c6", "c7")
_REST: Final = "elsewhere"
_MIB: Final = 2**20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChartRow:
    """One operation of one point in a chart."""

    key: str  # id of the point, by which the page filters
    label: str  # what tells its point from others, or its operation
    operation: OperationSummary
    cells: tuple[str, ...]  # numbers, with the headings of the chart
    flags: tuple[str, ...] = ()  # what speaks against its numbers
    notes: tuple[str, ...] = ()  # what else there is to say


def repeats_group(title: str, rows: Sequence[ChartRow]) -> doc.Group:
    """Returns rows below one axis, with a dot for every repeat."""
    scale = doc.Scale.of([row.operation.seconds for row in rows])
    return doc.Group(
        label=doc.Span(title),
        rows=tuple(_repeats_row(row, scale) for row in rows),
        axis=scale.axis(doc.seconds),
    )


def _repeats_row(row: ChartRow, scale: doc.Scale) -> doc.Row:
    beyond = [value for value in row.operation.seconds if value > scale.high]
    notes = row.notes
    if beyond:
        told = ", ".join(map(doc.seconds, sorted(beyond)[-3:]))
        which = "1 repeat is" if len(beyond) == 1 else f"{len(beyond)} repeats are"
        notes = (*notes, f"{which} beyond the axis: {told}")
    label = doc.Cell(doc.Span(row.label), row.flags, notes)
    return doc.Row((label, *map(doc.Span, row.cells)), plot=repeats_plot(row, scale), key=row.key)


def repeats_plot(row: ChartRow, scale: doc.Scale) -> doc.Plot:
    """Returns every repeat as a dot, the middle half as a band and the median as a stroke."""
    time, values = row.operation.time, row.operation.seconds
    dots = [(scale.place(value), _height(number)) for number, value in enumerate(_some(values))]
    inside = tuple(dot for dot in dots if dot[0] < 100)
    outside = tuple(dot for dot in dots if dot[0] >= 100)
    told = ", ".join(map(doc.seconds, values[:_MOST_TOLD]))
    few = len(values) <= _MOST_TOLD
    more = "" if few else f" and {len(values) - _MOST_TOLD} more"
    marks = [
        doc.Mark("band", ((scale.place(time.q25), 15), (scale.place(time.q75), 85))),
        doc.Mark("dots", inside),
        *([doc.Mark("dots", outside, "bad")] if outside else []),
        doc.Mark("ticks", ((scale.place(time.median), 0),), "plain"),
    ]
    span = "" if few else f"{doc.seconds(time.minimum)} to {doc.seconds(time.maximum)}: "
    return doc.Plot(f"{span}{told}{more}", tuple(marks))


def _height(number: int) -> float:
    """Returns the height of a dot, so that equal values do not hide each other."""
    return 30 + 40 * (number * 0.618 % 1)


def _some(values: Sequence[float]) -> Sequence[float]:
    """Returns all of few values; of many those at equal ranks, from smallest to largest."""
    if len(values) <= _MOST_DOTS:
        return values
    ordered, last = sorted(values), len(values) - 1
    return [ordered[round(last * rank / (_MOST_DOTS - 1))] for rank in range(_MOST_DOTS)]


def stage_elements(
    summary: RunSummary, rows: Mapping[str, Sequence[ChartRow]]
) -> list[doc.Element]:
    """Returns where the time of each operation went, for the operations of which Orbax says it."""
    found = {
        key: {
            name: values[0]
            for name, metrics in STAGES.items()
            if (values := [of[metric] for metric in metrics if of.get(metric)])
        }
        for key, of in medians_of(summary).items()
    }
    names = dict.fromkeys(name for stages in found.values() for name in stages)
    tones: dict[str, doc.Tone] = dict(zip(names, _TONES, strict=False))
    elements: list[doc.Element] = []
    for operation, of_operation in rows.items():
        staged = [(row, found.get((row.key, operation), {})) for row in of_operation]
        staged = [(row, stages) for row, stages in staged if stages]
        if not staged:
            continue
        # Parts of an operation say a second time what the whole says.
        part = any(operation.startswith(f"{other}_") for other in rows)
        longest = max(
            max(row.operation.time.median, sum(stages.values())) for row, stages in staged
        )
        scale = doc.Scale(0.0, longest or 1.0, log=False)
        columns = (doc.Column("point"), doc.Column("median", "number"), doc.Column("longest stage"))
        bars = tuple(_stage_row(row, stages, tones, scale) for row, stages in staged)
        group = doc.Group(label=doc.Span(operation), rows=bars, axis=scale.axis(doc.seconds))
        table = doc.Table(columns, groups=(group,), plots="stages", sorts=True)
        elements.append(
            doc.Details(doc.Span(operation), (_legend(staged, tones), table), open=not part)
        )
    return elements


def _legend(
    staged: Iterable[tuple[ChartRow, Mapping[str, float]]], tones: Mapping[str, doc.Tone]
) -> doc.Legend:
    names = dict.fromkeys(name for _, stages in staged for name in stages)
    return doc.Legend((*((tones.get(name, "dim"), name) for name in names), ("dim", _REST)))


def _stage_row(
    row: ChartRow, stages: Mapping[str, float], tones: Mapping[str, doc.Tone], scale: doc.Scale
) -> doc.Row:
    median, end = row.operation.time.median, 0.0
    rest = max(median - sum(stages.values()), 0.0)
    marks, told = [], []
    for name, length in (*stages.items(), (_REST, rest)):
        corners = ((scale.place(end), 15), (scale.place(end + length), 85))
        marks.append(doc.Mark("band", corners, tones.get(name, "dim")))
        share = doc.percent(length / median if median else None)
        told.append(f"{name} {doc.seconds(length)}, {share}")
        end += length
    longest = max(stages, key=stages.__getitem__)
    share = doc.percent(stages[longest] / median) if median else "–"
    largest = f"{longest} {doc.seconds(stages[longest])}, {share}"
    marks.append(doc.Mark("ticks", ((scale.place(median), 0),), "plain"))
    return doc.Row(
        (doc.Span(row.label), doc.seconds(median), largest),
        plot=doc.Plot("; ".join(told), tuple(marks)),
        key=row.key,
    )


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
) -> tuple[doc.Element, ...]:
    """Returns every operation over the points, with a dot per repeat, and where its time went."""
    series = [each for entry in info.expansion.points for each in Series.all_of(entry)]
    shown = {table.point_id for table in tables}
    series = [each for each in series if each.id in shown]
    short = short_names(series)
    rows = _chart_rows(tables, short)
    columns = (
        doc.Column("point"),
        *(doc.Column(heading, "number") for heading in (*_CHARTED, *extra.headings)),
    )
    groups = (
        [repeats_group(operation, found) for operation, found in rows.items()]
        if len(tables) > 1
        else [repeats_group(table.name, _by_operation(rows)) for table in tables]
    )
    empty = "No repeat has passed."
    table = doc.Table(columns, groups=tuple(groups), plots="repeats", sorts=True, empty=empty)
    stages = tuple(stage_elements(summary, rows))
    kept = {row.key for found in rows.values() for row in found}
    left = len(series) - len(kept)
    series = [each for each in series if each.id in kept]
    names = {each.id: f"{each.name} {each.id}" for each in series}
    more = f"{count(left, 'more point')} of this run, slower ones, are in summary.csv alone."
    bar = (doc.Filter("points", names, varying(series)),) if len(series) > 1 else ()
    return (
        *bar,
        doc.Heading("Time per operation"),
        doc.Paragraph(_HOW_TO_READ, "dim"),
        *((doc.Paragraph(more),) if left else ()),
        table,
        *((doc.Paragraph(extra.legend, "dim"),) if extra.legend else ()),
        doc.Section("Where the time went", stages, lead=(doc.Paragraph(_STAGES, "dim"),)),
        *((_points(series, short),) if len(series) > 1 else ()),
    )


def _points(series: Sequence[Series], names: Mapping[str, str]) -> doc.Element:
    """Returns the names that the page leaves short, in full and with the ids of their records."""
    rows = (
        doc.Row(
            (doc.Span(names[each.id]), doc.Span(each.name), doc.Span(each.id, code=True)),
            key=each.id,
        )
        for each in series
    )
    columns = (doc.Column("point"), doc.Column("name"), doc.Column("id", "fixed"))
    return doc.Details("Names and ids of the points", (doc.Table(columns, tuple(rows)),))


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
