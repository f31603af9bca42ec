"""Document of an async study: a table and a figure per series, and the lines through the sizes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.analysis.async_study import words
from orbax_bench_core.analysis.async_study.model import AsyncStudy, Documented, SizeSeries
from orbax_bench_core.document import (
    ByWidth,
    Column,
    Document,
    Element,
    Figure,
    Heading,
    Items,
    Only,
    Paragraph,
    Row,
    Section,
    Span,
    Table,
    figures,
    num_bytes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

MOST_FIGURES: Final = 20
"""Series that have figures: a page of hundreds could not be opened."""

_BEYOND: Final = 3.0
"""Factor by which the axis goes beyond the sizes on it."""

WIDE: Final = 140
"""Columns from which on a console has room for total times beside blocked ones."""


def study_document(study: AsyncStudy) -> Document:
    """Returns a study for people; a narrow console shows the blocked times alone."""
    return Document(
        title=f"Async study: {study.suite}",
        elements=_page(study),
        brief=_brief(study),
        escape=False,
    )


def _page(study: AsyncStudy) -> tuple[Element, ...]:
    elements: list[Element] = [
        Heading(f"Async study: {study.suite}", level=1),
        Paragraph(words.headline(study)),
        Paragraph(words.documented(study.documented), "dim"),
    ]
    for index, series in enumerate(study.series):
        elements.append(Heading(Span(series.name)))
        if index < MOST_FIGURES:
            drawn = functools.partial(shares_figure, series, study.documented)
            elements.append(Figure(f"Share of blocked time saved by size: {series.name}", drawn))
        elements.append(_table(series, words.HEADINGS))
        elements += [Paragraph(line, "dim") for line in words.fit_lines(series)]
    notes: list[Element] = [Items(study.notes)] if study.notes else []
    if len(study.series) > MOST_FIGURES:
        told = Items((f"The first {MOST_FIGURES} series have figures.",))
        notes.append(Only("html", (told,)))
    run = f"Run {study.run_id}."
    linked = f"{run} Figures are in `async_study.html`, every number in `async_study.json`."
    return (
        *elements,
        Section("Notes", tuple(notes)),
        Section("How to read this", (Items(tuple(words.READING.splitlines())),)),
        Only("html", (Paragraph(f"{run} Every number is in `async_study.json`.", "dim"),)),
        Only("markdown", (Paragraph(linked),)),
    )


def _brief(study: AsyncStudy) -> tuple[Element, ...]:
    elements: list[Element] = []
    for series in study.series:
        wide, narrow = _table(series, words.HEADINGS), _table(series, words.BLOCKED)
        elements += [Heading(Span(series.name)), ByWidth(WIDE, (wide,), (narrow,))]
        elements += [Paragraph(line, "dim") for line in words.fit_lines(series)]
    return (
        *elements,
        *(Paragraph(note, mark=Span("note:", "unsure")) for note in study.notes),
        Paragraph(Span(words.headline(study), strong=True)),
        Paragraph(words.documented(study.documented), "dim"),
    )


def shares_figure(series: SizeSeries, documented: Sequence[Documented]) -> Drawing:
    """Returns the drawing of the share of the blocked time that is saved, size by size.

    Documented figures go by parameters, and are left out where the sizes are in bytes.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    figure = figures.new_figure(9.6, 4.2)
    axes = figure.subplots()
    axes.set_xscale("log")
    counts = [size.num_parameters for size in series.sizes]
    places = [
        float(number if series.by_parameters and number else size.num_bytes)
        for number, size in zip(counts, series.sizes, strict=True)
    ]
    saved = [size.saved for size in series.sizes]
    lows = [each.value if each.low is None else each.low for each in saved]
    highs = [each.value if each.high is None else each.high for each in saved]
    axes.vlines(places, lows, highs, color=figures.CANDIDATE, linewidth=1.4)
    axes.plot(
        places,
        [each.value for each in saved],
        "s",
        color=figures.CANDIDATE,
        label="measured here, 95 % interval",
    )
    if series.by_parameters:
        told = [(each.num_parameters, each.saved) for each in documented]
        axes.plot(
            *zip(*told, strict=True),
            "D",
            color=figures.INCONCLUSIVE,
            markerfacecolor="none",
            label="documented, on machines not named",
        )
        places += [float(number) for number, _ in told]
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 3)))
        axes.xaxis.set_major_formatter(lambda value, _: words.count(value))
        axes.set_xlabel("parameters")
    else:
        axes.xaxis.set_major_locator(LogLocator(base=4))
        axes.xaxis.set_major_formatter(lambda value, _: num_bytes(value))
        axes.set_xlabel("bytes")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(min(places) / _BEYOND, max(places) * _BEYOND)
    axes.set_ylim(max(-1.0, min(0.0, *lows) - 0.05), 1.04)
    axes.yaxis.grid(visible=True, color=figures.LINE, linewidth=0.5)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.figure.legend(loc="outside lower center", ncols=2)
    return figure


def _table(series: SizeSeries, headings: tuple[str, ...]) -> Table:
    columns = tuple(
        Column(heading, "number" if heading in words.NUMBERS else "text") for heading in headings
    )
    rows = (dict(zip(words.HEADINGS, words.size_row(size), strict=True)) for size in series.sizes)
    return Table(columns, tuple(Row(tuple(row[name] for name in headings)) for row in rows))
