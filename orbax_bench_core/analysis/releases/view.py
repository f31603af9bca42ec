"""Document of a search over releases: the answer, the ratio by release, and the steps in order."""

from __future__ import annotations

import functools
from typing import Final

from orbax_bench_core.analysis.releases import words
from orbax_bench_core.analysis.releases.figures import ratio_figure
from orbax_bench_core.analysis.releases.model import ReleaseSearch, ReleaseWord
from orbax_bench_core.document import (
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

_ROLES: Final[dict[ReleaseWord, Role]] = {
    "REGRESSION": "bad",
    "PASS": "good",
    "INCONCLUSIVE": "unsure",
    "FAILED": "bad",
}


def search_document(search: ReleaseSearch) -> Document:
    """Returns a search for people; a terminal has seen its steps, and is told the answer."""
    answer = Paragraph(Span(words.answer(search), strong=True))
    operations = dict.fromkeys(found.operation for step in search.steps for found in step.ratios)
    figures = (
        Figure(
            f"Ratio of {operation} by release: filled against {search.releases[0]}, hollow against "
            "another",
            functools.partial(ratio_figure, search, operation),
            file=f"{index}.png",
        )
        for index, operation in enumerate(operations)
    )
    elements: tuple[Element, ...] = (
        Heading(f"Search over {len(search.releases)} releases of {search.package}", level=1),
        answer,
        *figures,
        Heading("Steps"),
        _steps(search),
        Section("How to read this", (Items(tuple(words.READING.splitlines())),)),
    )
    return Document(title=f"Releases of {search.package}", elements=elements, brief=(answer,))


def _steps(search: ReleaseSearch) -> Table:
    rows = [
        Row(
            (
                str(number),
                Span(step.release),
                Span(step.against),
                words.purpose(step.purpose),
                Span(step.outcome, _ROLES[step.outcome]),
                Span(", ".join(map(words.ratio, step.ratios))),
                Span(", ".join(map(words.interval, step.ratios))),
                Span(step.why),
            )
        )
        for number, step in enumerate(search.steps, start=1)
    ]
    kinds = {"step": "number", "for": "fixed", "verdict": "fixed", "in words": "prose"}
    columns = tuple(Column(heading, kinds.get(heading, "text")) for heading in words.HEADINGS)  # type: ignore[arg-type]
    return Table(columns, tuple(rows))
