"""Document of past runs: each series, where it changed, and every run of it."""

from __future__ import annotations

import functools
from typing import Final

from orbax_bench_core.analysis.history import words
from orbax_bench_core.analysis.history.figures import series_figure
from orbax_bench_core.analysis.history.model import History, PastRun, Series
from orbax_bench_core.document import (
    BLANK,
    Column,
    Details,
    Document,
    Element,
    Figure,
    Group,
    Heading,
    Items,
    Paragraph,
    Row,
    Section,
    Span,
    Table,
    Text,
)

MOST_FIGURES: Final = 60
"""Series that have a figure: a page of thousands could not be opened."""

_LAST: Final = 10
"""Runs of a series of seconds that a terminal shows."""

_NO_NUMBERS: Final = (
    Column("from", "fixed"),
    Column("to", "fixed"),
    Column("flagged", "fixed"),
    Column("changed with", "prose"),
)


def history_document(history: History, *, every: bool = False) -> Document:
    """Returns past runs for people, series that changed first.

    With `every`, operations that decide no verdict are shown, too.
    """
    series = words.shown(history, every=every)
    return Document(
        title=f"History of {history.num_runs} runs",
        elements=_page(history, series),
        brief=_brief(history, series),
    )


def _page(history: History, series: list[Series]) -> tuple[Element, ...]:
    elements: list[Element] = [
        Heading("History", level=1),
        Paragraph(words.headline(history, series), "dim"),
    ]
    for index, shown in enumerate(series):
        about = f"{shown.point} {shown.point_id}"
        elements += [
            Heading((Span(shown.operation), " ", Span(about, "dim"))),
            Paragraph(Span(words.sides(shown)), "dim"),
        ]
        if index < MOST_FIGURES:
            title = f"{shown.operation} of {shown.point}, run by run"
            elements.append(Figure(title, functools.partial(series_figure, shown)))
        if shown.kind == "ratio":
            elements.append(_parts(shown, runs=True))
            asked = tuple(Span(words.asking(change)) for change in shown.changes)
            elements += [Items(asked)] if asked else []
        elements.append(Details("Every run", (_runs(shown, shown.runs),)))
    if not series:
        elements.append(Paragraph("There is nothing to show."))
    significance = f"{100 * history.significance:.3g} %"
    reading = words.READING.format(significance=significance).splitlines()
    notes = _notes(history, series)
    return (
        *elements,
        Section("Notes", (Items(notes),) if notes else ()),
        Section("How to read this", (Items(tuple(reading)),)),
    )


def _notes(history: History, series: list[Series]) -> tuple[Text, ...]:
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


def _remarks(series: list[Series]) -> list[str]:
    return [
        f"{count} series: {remark}" if count > 1 else remark
        for remark, count in words.remarks(series).items()
    ]


def _brief(history: History, series: list[Series]) -> tuple[Element, ...]:
    elements: list[Element] = []
    if history.num_runs == 1 and series:
        elements += _only(series)
    else:
        for shown in series:
            elements += _brief_series(shown)
    elements += [Paragraph(Span(said), mark=Span("note:", "dim")) for said in _remarks(series)]
    elements += [
        Paragraph(Span(line), mark=Span("passed over:", "unsure")) for line in history.passed_over
    ]
    elements += [Paragraph(Span(line), mark=Span("left out:", "bad")) for line in history.left_out]
    hidden = len(history.series) - len(series)
    if hidden:
        told = f"{hidden} series of operations that decide nothing: --all shows them."
        elements.append(Paragraph(told, "dim"))
    return (*elements, Paragraph(Span(words.headline(history, series), strong=True)))


def _only(series: list[Series]) -> list[Element]:
    """Returns the one run that there is as one table: nothing can have changed."""
    points = dict.fromkeys((shown.point, shown.point_id) for shown in series)
    groups = tuple(
        Group(
            label=(Span(name, strong=True), " ", Span(id_, "dim")),
            rows=tuple(
                Row((Span(shown.operation), *map(Span, words.run_row(shown, shown.runs[-1])[2:5])))
                for shown in series
                if (shown.point, shown.point_id) == (name, id_)
            ),
        )
        for name, id_ in points
    )
    headings = ("operation", *words.RUN_HEADINGS[series[0].kind][2:5])
    columns = tuple(
        Column(heading, "text" if heading == "operation" else "number") for heading in headings
    )
    run = series[0].runs[-1]
    about = f"one run, {run.run_id} of {run.began_at:%Y-%m-%d %H:%M}: {words.what_ran(run)}"
    sides = dict.fromkeys(words.sides(shown) for shown in series if shown.kind == "ratio")
    return [
        Table(columns, groups=groups, indented=True, ruled=False),
        Paragraph(Span(about, "dim")),
        *(Paragraph(Span(side, "dim")) for side in sides),
    ]


def _brief_series(series: Series) -> list[Element]:
    name, operation = Span(series.point, strong=True), Span(series.operation, strong=True)
    elements: list[Element] = [
        Paragraph((name, " ", Span(series.point_id, "dim"), " ", operation)),
        Paragraph(
            (words.sparkline(series), "  ", Span(words.sides(series), "dim")),
            indent=2,
        ),
    ]
    if series.kind == "seconds":
        if len(series.runs) > _LAST:
            told = f"the last {_LAST} of {len(series.runs)} runs:"
            elements.append(Paragraph(told, "dim", indent=2))
        return [*elements, _runs(series, series.runs[-_LAST:], brief=True), BLANK]
    elements.append(_parts(series, changes=bool(series.changes)))
    for row in words.rows(series):
        if row.change is not None:
            said = f"{words.effect(row.change)} {words.between(series, row.change)}"
            elements.append(Paragraph(Span(said, "bad" if row.slower else "good"), indent=2))
            elements.append(Paragraph(Span(words.asking(row.change)), indent=4, fold="whole"))
    elements.append(Paragraph(Span(words.revisions(series), "dim"), indent=2, fold="hanging"))
    return [*elements, BLANK]


def _parts(series: Series, *, changes: bool = True, runs: bool = False) -> Table:
    """Returns the runs between the changes of a series of ratios.

    With `changes` the changes are told, too; with `runs`, between which runs each of them lies.
    """
    headings = words.HEADINGS if changes else words.HEADINGS[:4]
    rows = []
    for row in words.rows(series):
        cells: list[Text] = [Span(cell) for cell in row.cells[: len(headings)]]
        if changes and runs:
            cells[4] = Span(row.cells[4], "bad" if row.slower else "good")
        if runs and row.change is not None:
            between = Span(f" ({words.between(series, row.change)})", "dim")
            cells[-1] = (Span(row.cells[-1]), between)
        rows.append(Row(tuple(cells)))
    others = {column.heading: column for column in _NO_NUMBERS}
    columns = tuple(others.get(heading, Column(heading, "number")) for heading in headings)
    return Table(columns, tuple(rows), indented=True)


def _runs(series: Series, runs: tuple[PastRun, ...], *, brief: bool = False) -> Table:
    """Returns runs in seconds; in brief the release and the code of each are one column."""
    headings = words.RUN_HEADINGS[series.kind]
    headings = (*headings[:-2], "what ran") if brief else headings
    columns = (
        Column(
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
        rows.append(Row(tuple(map(Span, shown))))
    return Table(tuple(columns), tuple(rows), indented=True)
