"""Document of past runs: each series, where it changed, every run of it, and small plots."""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core import document as doc
from orbax_bench_core.analysis.history import words
from orbax_bench_core.analysis.history.build import differences
from orbax_bench_core.analysis.history.model import History, PastRun, PastSeries
from orbax_bench_core.analysis.verdicts import ratio_axis, ratio_limits
from orbax_bench_core.document import figures
from orbax_bench_core.gate import NIGHTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

MOST_FIGURES: Final = 60
"""Series that have a figure: a page of thousands could not be opened."""

_LAST: Final = 10
"""Runs of a series of seconds that a terminal shows."""

_NO_NUMBERS: Final = (
    doc.Column("from", "fixed"),
    doc.Column("to", "fixed"),
    doc.Column("flagged", "fixed"),
    doc.Column("changed with", "prose"),
)


def history_document(history: History, *, every: bool = False) -> doc.Document:
    """Returns past runs for people, series that changed first.

    With `every`, operations that decide no verdict are shown, too.
    """
    series = words.shown(history, every=every)
    return doc.Document(
        title=f"History of {history.num_runs} runs",
        elements=_page(history, series),
        brief=_brief(history, series),
    )


def _page(history: History, series: list[PastSeries]) -> tuple[doc.Element, ...]:
    elements: list[doc.Element] = [
        doc.Heading("History", level=1),
        doc.Paragraph(words.headline(history, series), "dim"),
        *_excesses(series),
    ]
    for index, shown in enumerate(series):
        about = f"{shown.point} {shown.point_id}"
        elements += [
            doc.Heading((doc.Span(shown.operation), " ", doc.Span(about, "dim"))),
            doc.Paragraph(doc.Span(words.sides(shown)), "dim"),
        ]
        if index < MOST_FIGURES:
            title = f"{shown.operation} of {shown.point}, run by run"
            elements.append(doc.Figure(title, functools.partial(series_figure, shown)))
        if shown.kind == "ratio":
            elements.append(_parts(shown, runs=True))
            asked = tuple(doc.Span(words.asking(change)) for change in shown.changes)
            elements += [doc.Items(asked)] if asked else []
        elements.append(doc.Details("Every run", (_runs(shown, shown.runs),)))
    if not series:
        elements.append(doc.Paragraph("There is nothing to show."))
    significance = f"{100 * history.significance:.3g} %"
    reading = words.READING.format(significance=significance, nights=NIGHTS).splitlines()
    notes = _notes(history, series)
    return (
        *elements,
        doc.Section("Notes", (doc.Items(notes),) if notes else ()),
        doc.Section("How to read this", (doc.Items(tuple(reading)),)),
    )


def _excesses(series: list[PastSeries]) -> list[doc.Element]:
    found = dict.fromkeys(said for each in series for said in words.excesses(each))
    mark = doc.Span("worse than its baseline:", "bad")
    return [doc.Paragraph(doc.Span(said), mark=mark) for said in found]


def _notes(history: History, series: list[PastSeries]) -> tuple[doc.Text, ...]:
    notes = [*_remarks(series), *(f"Passed over {line}" for line in history.passed_over)]
    notes += [f"Left out {line}" for line in history.left_out]
    hidden = len(history.series) - len(series)
    if hidden:
        notes.append(
            f"{hidden} series of operations that decide no verdict are not shown; `--all` shows "
            "them."
        )
    if notes and len(series) > MOST_FIGURES:
        notes.append(f"The first {MOST_FIGURES} series have figures, those that changed first.")
    return tuple(notes)


def _remarks(series: list[PastSeries]) -> list[str]:
    return [
        f"{count} series: {remark}" if count > 1 else remark
        for remark, count in words.remarks(series).items()
    ]


def _brief(history: History, series: list[PastSeries]) -> tuple[doc.Element, ...]:
    elements: list[doc.Element] = []
    if history.num_runs == 1 and series:
        elements += _only(series)
    else:
        for shown in series:
            elements += _brief_series(shown)
    elements += [
        *_excesses(series),
        *(
            doc.Paragraph(doc.Span(said), mark=doc.Span("note:", "dim"))
            for said in _remarks(series)
        ),
    ]
    elements += [
        doc.Paragraph(doc.Span(line), mark=doc.Span("passed over:", "unsure"))
        for line in history.passed_over
    ]
    elements += [
        doc.Paragraph(doc.Span(line), mark=doc.Span("left out:", "bad"))
        for line in history.left_out
    ]
    hidden = len(history.series) - len(series)
    if hidden:
        told = f"{hidden} series of operations that decide nothing: --all shows them."
        elements.append(doc.Paragraph(told, "dim"))
    return (*elements, doc.Paragraph(doc.Span(words.headline(history, series), strong=True)))


def _only(series: list[PastSeries]) -> list[doc.Element]:
    """Returns the one run that there is as one table: nothing can have changed."""
    points = dict.fromkeys((shown.point, shown.point_id) for shown in series)
    groups = tuple(
        doc.Group(
            label=(doc.Span(name, strong=True), " ", doc.Span(id_, "dim")),
            rows=tuple(
                doc.Row(
                    (
                        doc.Span(shown.operation),
                        *map(doc.Span, words.run_row(shown, shown.runs[-1])[2:5]),
                    )
                )
                for shown in series
                if (shown.point, shown.point_id) == (name, id_)
            ),
        )
        for name, id_ in points
    )
    headings = ("operation", *words.RUN_HEADINGS[series[0].kind][2:5])
    columns = tuple(
        doc.Column(heading, "text" if heading == "operation" else "number") for heading in headings
    )
    run = series[0].runs[-1]
    about = f"one run, {run.run_id} of {run.began_at:%Y-%m-%d %H:%M}: {words.what_ran(run)}"
    sides = dict.fromkeys(words.sides(shown) for shown in series if shown.kind == "ratio")
    return [
        doc.Table(columns, groups=groups, indented=True, ruled=False),
        doc.Paragraph(doc.Span(about, "dim")),
        *(doc.Paragraph(doc.Span(side, "dim")) for side in sides),
    ]


def _brief_series(series: PastSeries) -> list[doc.Element]:
    name, operation = doc.Span(series.point, strong=True), doc.Span(series.operation, strong=True)
    elements: list[doc.Element] = [
        doc.Paragraph((name, " ", doc.Span(series.point_id, "dim"), " ", operation)),
        doc.Paragraph(
            (words.sparkline(series), "  ", doc.Span(words.sides(series), "dim")),
            indent=2,
        ),
    ]
    if series.kind == "seconds":
        if len(series.runs) > _LAST:
            told = f"the last {_LAST} of {len(series.runs)} runs:"
            elements.append(doc.Paragraph(told, "dim", indent=2))
        return [*elements, _runs(series, series.runs[-_LAST:], brief=True), doc.BLANK]
    elements.append(_parts(series, changes=bool(series.changes)))
    for row in words.rows(series):
        if row.change is not None:
            said = f"{words.effect(row.change)} {words.between(series, row.change)}"
            elements.append(
                doc.Paragraph(doc.Span(said, "bad" if row.slower else "good"), indent=2)
            )
            elements.append(
                doc.Paragraph(doc.Span(words.asking(row.change)), indent=4, fold="whole")
            )
    elements.append(
        doc.Paragraph(doc.Span(words.revisions(series), "dim"), indent=2, fold="hanging")
    )
    return [*elements, doc.BLANK]


def _parts(series: PastSeries, *, changes: bool = True, runs: bool = False) -> doc.Table:
    """Returns the runs between the changes of a series of ratios.

    With `changes` the changes are told, too; with `runs`, between which runs each of them lies.
    """
    headings = words.HEADINGS if changes else words.HEADINGS[:4]
    rows = []
    for row in words.rows(series):
        cells: list[doc.Text] = [doc.Span(cell) for cell in row.cells[: len(headings)]]
        if changes and runs:
            cells[4] = doc.Span(row.cells[4], "bad" if row.slower else "good")
        if runs and row.change is not None:
            between = doc.Span(f" ({words.between(series, row.change)})", "dim")
            cells[-1] = (doc.Span(row.cells[-1]), between)
        rows.append(doc.Row(tuple(cells)))
    others = {column.heading: column for column in _NO_NUMBERS}
    columns = tuple(others.get(heading, doc.Column(heading, "number")) for heading in headings)
    return doc.Table(columns, tuple(rows), indented=True)


def _runs(series: PastSeries, runs: tuple[PastRun, ...], *, brief: bool = False) -> doc.Table:
    """Returns runs in seconds; in brief the release and the code of each are one column."""
    headings = words.RUN_HEADINGS[series.kind]
    headings = (*headings[:-2], "what ran") if brief else headings
    columns = (
        doc.Column(
            heading,
            "number" if place in (2, 3, 4) else "text",
            apart=heading == "what ran",
        )
        for place, heading in enumerate(headings)
    )
    rows = []
    for run in runs:
        cells = words.run_row(series, run)
        shown = (*cells[:-2], words.tested(run)) if brief else cells
        rows.append(doc.Row(tuple(map(doc.Span, shown))))
    return doc.Table(tuple(columns), tuple(rows), indented=True)


_WIDTH: Final = 9.6
_HEIGHT: Final = 3.0
_FEW_TICKS: Final = 7
_LEAST: Final = 0.05
"""Least relative room that an axis of ratios shows on each side, lest noise look like mountains."""


def series_figure(series: PastSeries) -> Drawing:
    """Returns every run with its interval, or quartiles of seconds, and where the level changes."""
    figure = figures.new_figure(_WIDTH, _HEIGHT)
    axes = figure.subplots()
    runs = series.runs
    places = range(len(runs))
    values = [run.value for run in runs]
    every = [end for run in runs for end in (run.low, run.value, run.high) if end is not None]
    limits = ratio_limits(every, _LEAST)
    # Where an end is open, its line goes on to that of the axis.
    below = [max(run.value - (run.low or limits[0]), 0) for run in runs]
    above = [max((run.high or limits[1]) - run.value, 0) for run in runs]
    axes.errorbar(
        places,
        values,
        yerr=[below, above],
        fmt="o",
        color=figures.CANDIDATE,
        ecolor=figures.LINE,
        elinewidth=1.4,
    )
    if series.kind == "ratio":
        axes.set_yscale("log")
        _draw_parts(axes, series)
        axes.set_ylim(*limits)
        ratio_axis(axes.yaxis, *limits)
        axes.xaxis.grid(visible=False)
        axes.set_ylabel("candidate / baseline")
    else:
        from matplotlib.ticker import FuncFormatter

        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: doc.seconds(float(value))))
        axes.yaxis.grid(visible=True, color=figures.LINE, linewidth=0.5)
        # One run far out, which is then beyond the axis, does not flatten the others.
        axes.set_ylim(0, 1.15 * doc.Scale.of([values]).high)
    axes.set_xlim(-0.7, max(len(runs), 2) - 0.3)
    step = max(1, -(-len(runs) // _FEW_TICKS))
    ticks = list(places)[::step]
    axes.set_xticks(ticks, [words.day(runs[tick].began_at) for tick in ticks])
    return figure


def _draw_parts(axes: Axes, series: PastSeries) -> None:
    axes.axhline(1, color=figures.DIM, linewidth=1)
    start = 0
    for part in series.parts:
        level, end = statistics.median(run.value for run in part), start + len(part)
        axes.plot([start - 0.5, end - 0.5], [level, level], color=figures.INK, linewidth=1.4)
        start = end
    for change in series.changes:
        slower = change.effect > 0
        colour = figures.REGRESSION if slower else figures.PASS
        place = change.index - 0.5
        axes.axvline(place, color=colour, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.annotate(
            f"{100 * change.effect:+.3g} %",
            (place, 1),
            xycoords=("data", "axes fraction"),
            xytext=(4, -9),
            textcoords="offset points",
            color=colour,
            fontsize=8.5,
        )


_MOST_SERIES: Final = 20
_TREND_HEIGHT: Final = 2.6
_VERSIONS: Final = frozenset({"commit", "image"})
"""Versions that may differ every night, and are told only beside a change."""


def trends_table(histories: Mapping[str, History], keys: Mapping[str, str]) -> doc.Table | None:
    """Returns the series of suites as small plots, those that changed first."""
    groups = [_group(history, suite, keys[suite]) for suite, history in histories.items()]
    columns = (
        doc.Column("series"),
        doc.Column("runs", "number"),
        doc.Column("latest", "number"),
        doc.Column("last change", "fixed"),
    )
    shown = tuple(group for group in groups if group.rows)
    return doc.Table(columns, groups=shown, plots="run by run") if shown else None


def _group(history: History, suite: str, key: str) -> doc.Group:
    every = [series for series in words.shown(history, every=False) if len(series.runs) > 1]
    rows = tuple(_row(series) for series in every[:_MOST_SERIES])
    more = len(every) - len(rows)
    said = f"{more} more series: `orbax-bench history` shows them."
    remarks = [doc.Paragraph(said, "dim")] if more else []
    return doc.Group(label=doc.Span(suite), rows=rows, remarks=tuple(remarks), key=key)


def what_ran_in(history: History) -> dict[str, str]:
    """Returns what each run measured, by its id: the release of Orbax, commit, environment."""
    return {
        run.run_id: words.release_and_code(run) for series in history.series for run in series.runs
    }


def _row(series: PastSeries) -> doc.Row:
    name = f"{series.operation} of {series.point}"
    last = series.changes[-1] if series.changes else None
    changed = doc.Span("–")
    if last is not None:
        changed = doc.Span(words.effect(last), "bad" if last.effect > 0 else "good")
    return doc.Row(
        (
            doc.Cell(doc.Span(name), notes=(*words.excesses(series), *_steps(series))),
            str(len(series.runs)),
            _value(series, series.runs[-1].value),
            changed,
        ),
        plot=trend_plot(series),
    )


def _steps(series: PastSeries) -> Iterator[str]:
    """Yields each change with what ran differently since, and how to ask whether it is one."""
    for change in series.changes:
        with_it = "; ".join(change.differs) or "nothing that is recorded differs"
        when = words.day(series.runs[change.index].began_at)
        yield f"{when} {words.effect(change)}: {with_it}; {words.asking(change)}"


def trend_plot(series: PastSeries) -> doc.Plot:
    """Returns every run as a dot, the level between changes, and where another release ran."""
    runs, scale = series.runs, _scale([run.value for run in series.runs])
    across = [100 * (place + 0.5) / len(runs) for place in range(len(runs))]

    def down(value: float) -> float:
        return 90 - 0.8 * scale.place(value)

    marks = []
    for place, (before, now) in enumerate(itertools.pairwise(runs), start=1):
        differs = [each for each in differences(now.ran, before.ran) if not _nightly(each)]
        if differs:
            told = f"{words.day(now.began_at)}: {'; '.join(differs)}"
            marks.append(doc.Mark("ticks", ((100 * place / len(runs), 0),), "dim", told))
    start = 0
    for part in series.parts:
        level = down(statistics.median(run.value for run in part))
        ends = (100 * start / len(runs), 100 * (start + len(part)) / len(runs))
        marks.append(doc.Mark("line", ((ends[0], level), (ends[1], level)), "plain"))
        start += len(part)
    for change in series.changes:
        told = f"{words.day(runs[change.index].began_at)}: {words.effect(change)}"
        tone: doc.Role = "bad" if change.effect > 0 else "good"
        marks.append(doc.Mark("ticks", ((100 * change.index / len(runs), 0),), tone, told))
    for centre, run in zip(across, runs, strict=True):
        marks.append(doc.Mark("dots", ((centre, down(run.value)),), "bar", _told(series, run)))
    ends_at = f"{_value(series, runs[0].value)} to {_value(series, runs[-1].value)}"
    return doc.Plot(f"{len(runs)} runs, {ends_at}", tuple(marks), height=_TREND_HEIGHT)


def _scale(values: Sequence[float]) -> doc.Scale:
    """Returns a scale of all values but single ones far from those around them.

    A step that lasts is no outlier, and neither is the last value: it may be the first of one.
    """
    around = [
        statistics.median(values[max(place - 1, 0) : place + 2]) for place in range(len(values))
    ]
    return doc.Scale.of([value] for value in [*around, values[-1]])


def _nightly(difference: str) -> bool:
    return difference.partition(":")[0] in _VERSIONS


def _told(series: PastSeries, run: PastRun) -> str:
    ran = words.release_and_code(run) or run.code
    value, around = words.value_of(series, run), words.around(series, run)
    return f"{words.day(run.began_at)}: {value} ({around}), {ran}"


def _value(series: PastSeries, value: float) -> str:
    return doc.seconds(value) if series.kind == "seconds" else f"{value:.3f}x"
