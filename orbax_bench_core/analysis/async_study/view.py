"""Document of an async study: a table and a figure per series, and the lines through its sizes."""

from __future__ import annotations

import functools
from typing import Final

from orbax_bench_core.analysis.async_study import words
from orbax_bench_core.analysis.async_study.figures import times_figure
from orbax_bench_core.analysis.async_study.model import AsyncStudy, SizeSeries
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
)

MOST_FIGURES: Final = 20
"""Series that have a figure: a page of hundreds could not be opened."""

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
            draw = functools.partial(times_figure, series)
            elements.append(Figure(f"Blocked and total time by size: {series.name}", draw))
        elements.append(_table(series, words.HEADINGS))
        elements += [Paragraph(line, "dim") for line in words.fit_lines(series)]
    notes: list[Element] = [Items(study.notes)] if study.notes else []
    if len(study.series) > MOST_FIGURES:
        told = Items((f"The first {MOST_FIGURES} series have a figure.",))
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


def _table(series: SizeSeries, headings: tuple[str, ...]) -> Table:
    columns = tuple(
        Column(heading, "number" if heading in words.NUMBERS else "text") for heading in headings
    )
    rows = (dict(zip(words.HEADINGS, words.size_row(size), strict=True)) for size in series.sizes)
    return Table(columns, tuple(Row(tuple(row[name] for name in headings)) for row in rows))
