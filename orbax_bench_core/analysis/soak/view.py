"""Document of a soak: the verdict, and a table of levels and a figure per process."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.analysis.soak import words
from orbax_bench_core.analysis.soak.figures import memory_figure
from orbax_bench_core.analysis.soak.model import Soak, SoakSeries, SoakWord
from orbax_bench_core.document import (
    ByWidth,
    Callout,
    Column,
    Document,
    Element,
    Figure,
    Heading,
    Items,
    Paragraph,
    Role,
    Row,
    Section,
    Span,
    Table,
)

_WIDE: Final = 120
"""Columns of a terminal that has room for the whole table."""
_ROLES: Final[dict[SoakWord, Role]] = {"LEAK": "bad", "PASS": "good", "INCONCLUSIVE": "unsure"}


def soak_document(soak: Soak) -> Document:
    """Returns a soak for people; a terminal reads the verdict last."""
    verdict = Callout(Span(soak.word, _ROLES[soak.word]), words.headline(soak))
    series = [element for each in soak.series for element in _series(each, soak.limit_mib)]
    return Document(
        title=f"Soak: {soak.suite}",
        elements=(
            Heading(f"Soak: {soak.suite}", level=1),
            verdict,
            *series,
            Section("Notes", (Items(soak.notes),) if soak.notes else ()),
            Section("How to read this", (Items(tuple(words.READING.splitlines())),)),
            Paragraph(f"Run {soak.run_id}. Every number is in `soak.json`.", "dim"),
        ),
        brief=(
            *(element for element in series if not isinstance(element, Figure)),
            *(Paragraph(note, mark=Span("note:", "unsure")) for note in soak.notes),
            Paragraph(
                (Span(soak.word, _ROLES[soak.word], strong=True), f": {words.headline(soak)}")
            ),
        ),
    )


def soak_section(soak: Soak) -> Document:
    """Returns what the report of a run says of its soak, above the tables."""
    verdict = Callout(Span(soak.word, _ROLES[soak.word]), words.headline(soak))
    series = [element for each in soak.series for element in _series(each, soak.limit_mib)]
    tables = (
        Paragraph(element.text) if isinstance(element, Heading) else element
        for element in series
        if not isinstance(element, Figure)
    )
    more = Paragraph("Figures and explanations are in soak.html.", "dim")
    elements = (Heading("Soak"), verdict, *tables, more)
    return Document(title=soak.suite, elements=elements, brief=(verdict,))


def _series(series: SoakSeries, limit_mib: float) -> list[Element]:
    about = f"{series.name}, host {series.host}: {series.saves} saves of one process"
    elements: list[Element] = [Heading(Span(about))]
    if series.levels:
        elements.append(
            Figure(
                f"Memory of the process by save: {series.name}",
                functools.partial(memory_figure, series, limit_mib),
                file=f"{series.series_id}_host_{series.host}.png",
            )
        )
    if series.growths:
        whole, judged = _table(series, words.HEADINGS), _table(series, words.JUDGED)
        elements.append(ByWidth(_WIDE, (whole,), (judged,)))
    return elements


def _table(series: SoakSeries, headings: Sequence[str]) -> Table:
    columns = tuple(
        Column(
            heading,
            "number" if heading in words.NUMBERS else "fixed",
            whole=heading != words.HEADINGS[0],
        )
        for heading in headings
    )
    rows = []
    for growth in series.growths:
        cells = dict(zip(words.HEADINGS, words.growth_row(growth), strict=True))
        role = _ROLES[growth.word] if growth.word is not None else "dim"
        *numbers, word = (cells[heading] for heading in headings)
        rows.append(Row((*numbers, Span(word, role)), dim=growth.limit is None))
    return Table(columns, tuple(rows))
