"""Plots of a summary: rows with a dot for every repeat, and rows of the stages of their time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from orbax_bench_core.analysis.summary.model import OperationSummary, RunSummary
from orbax_bench_core.analysis.summary.stages import STAGE_METRICS, Stage, stages_of
from orbax_bench_core.document import (
    Cell,
    Column,
    Details,
    Element,
    Group,
    Legend,
    Mark,
    Plot,
    Row,
    Scale,
    Span,
    Table,
    Tone,
    percent,
    seconds,
)

_MOST_DOTS: Final = 60
_MOST_TOLD: Final = 12
_TONES: Final[tuple[Tone, ...]] = ("c1", "c2", "c3", "c4", "c5", "c6", "c7")
_REST: Final = "elsewhere"
_MIB: Final = 2**20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChartRow:
    """One operation of one point in a chart.

    Attributes:
        key: Id of the point, by which the page filters.
        label: What tells its point from others, or its operation.
        operation: The operation.
        cells: Numbers, with the headings of the chart.
        flags: What speaks against its numbers.
        notes: What else there is to say.
    """

    key: str
    label: str
    operation: OperationSummary
    cells: tuple[str, ...]
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def repeats_group(title: str, rows: Sequence[ChartRow]) -> Group:
    """Returns rows below one axis, with a dot for every repeat."""
    scale = Scale.of([row.operation.seconds for row in rows])
    return Group(
        label=Span(title),
        rows=tuple(_repeats_row(row, scale) for row in rows),
        axis=scale.axis(seconds),
    )


def _repeats_row(row: ChartRow, scale: Scale) -> Row:
    beyond = [value for value in row.operation.seconds if value > scale.high]
    notes = row.notes
    if beyond:
        told = ", ".join(map(seconds, sorted(beyond)[-3:]))
        which = "1 repeat is" if len(beyond) == 1 else f"{len(beyond)} repeats are"
        notes = (*notes, f"{which} beyond the axis: {told}")
    label = Cell(Span(row.label), row.flags, notes)
    return Row((label, *map(Span, row.cells)), plot=repeats_plot(row, scale), key=row.key)


def repeats_plot(row: ChartRow, scale: Scale) -> Plot:
    """Returns every repeat as a dot, the middle half as a band and the median as a stroke."""
    time, values = row.operation.time, row.operation.seconds
    dots = [(scale.place(value), _height(number)) for number, value in enumerate(_some(values))]
    inside = tuple(dot for dot in dots if dot[0] < 100)
    outside = tuple(dot for dot in dots if dot[0] >= 100)
    told = ", ".join(map(seconds, values[:_MOST_TOLD]))
    few = len(values) <= _MOST_TOLD
    more = "" if few else f" and {len(values) - _MOST_TOLD} more"
    marks = [
        Mark("band", ((scale.place(time.q25), 15), (scale.place(time.q75), 85))),
        Mark("dots", inside),
        *([Mark("dots", outside, "bad")] if outside else []),
        Mark("ticks", ((scale.place(time.median), 0),), "plain"),
    ]
    span = "" if few else f"{seconds(time.minimum)} to {seconds(time.maximum)}: "
    return Plot(f"{span}{told}{more}", tuple(marks))


def _height(number: int) -> float:
    """Returns the height of a dot, so that equal values do not hide each other."""
    return 30 + 40 * (number * 0.618 % 1)


def _some(values: Sequence[float]) -> Sequence[float]:
    """Returns all of few values; of many those at equal ranks, from smallest to largest."""
    if len(values) <= _MOST_DOTS:
        return values
    ordered, last = sorted(values), len(values) - 1
    return [ordered[round(last * rank / (_MOST_DOTS - 1))] for rank in range(_MOST_DOTS)]


def stage_elements(summary: RunSummary, rows: Mapping[str, Sequence[ChartRow]]) -> list[Element]:
    """Returns where the time of each operation went, for the operations of which Orbax says it."""
    medians: dict[tuple[str, str], dict[str, float]] = {}
    for metric in summary.metrics:
        if metric.metric in STAGE_METRICS:
            key = (metric.point_id, metric.operation)
            medians.setdefault(key, {})[metric.metric] = metric.median
    found = {key: stages_of(metrics) for key, metrics in medians.items()}
    names = list(dict.fromkeys(stage.name for stages in found.values() for stage in stages))
    tones: dict[str, Tone] = dict(zip(names, _TONES, strict=False))
    elements: list[Element] = []
    for operation, of_operation in rows.items():
        staged = [(row, found.get((row.key, operation), ())) for row in of_operation]
        staged = [(row, stages) for row, stages in staged if stages]
        if not staged:
            continue
        # Parts of an operation say a second time what the whole says.
        part = any(operation.startswith(f"{other}_") for other in rows)
        table = _stage_table(operation, staged, tones)
        elements.append(Details(Span(operation), (_legend(staged, tones), table), open=not part))
    return elements


def _legend(
    staged: Iterable[tuple[ChartRow, Sequence[Stage]]], tones: Mapping[str, Tone]
) -> Legend:
    names = dict.fromkeys(stage.name for _, stages in staged for stage in stages)
    return Legend((*((tones.get(name, "dim"), name) for name in names), ("dim", _REST)))


def _stage_table(
    operation: str,
    staged: Sequence[tuple[ChartRow, Sequence[Stage]]],
    tones: Mapping[str, Tone],
) -> Table:
    longest = max(max(row.operation.time.median, _sum(stages)) for row, stages in staged)
    scale = Scale(0.0, longest or 1.0, log=False)
    columns = (Column("point"), Column("median", "number"), Column("longest stage"))
    rows = tuple(_stage_row(row, stages, tones, scale) for row, stages in staged)
    group = Group(label=Span(operation), rows=rows, axis=scale.axis(seconds))
    return Table(columns, groups=(group,), plots="stages", sorts=True)


def _stage_row(
    row: ChartRow, stages: Sequence[Stage], tones: Mapping[str, Tone], scale: Scale
) -> Row:
    median, end = row.operation.time.median, 0.0
    rest = max(median - _sum(stages), 0.0)
    marks, told = [], []
    for name, length in (*((stage.name, stage.seconds) for stage in stages), (_REST, rest)):
        corners = ((scale.place(end), 15), (scale.place(end + length), 85))
        marks.append(Mark("band", corners, tones.get(name, "dim")))
        share = percent(length / median if median else None)
        told.append(f"{name} {seconds(length)}, {share}")
        end += length
    longest = max(stages, key=lambda stage: stage.seconds, default=None)
    share = "–" if longest is None or not median else percent(longest.seconds / median)
    largest = "–" if longest is None else f"{longest.name} {seconds(longest.seconds)}, {share}"
    marks.append(Mark("ticks", ((scale.place(median), 0),), "plain"))
    return Row(
        (Span(row.label), seconds(median), largest),
        plot=Plot("; ".join(told), tuple(marks)),
        key=row.key,
    )


def _sum(stages: Iterable[Stage]) -> float:
    return sum(stage.seconds for stage in stages)
