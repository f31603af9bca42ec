"""Document of recovery drills: phases, losses and verdicts."""

from __future__ import annotations

import functools
from typing import Final

from orbax_bench_core.analysis.recovery import words
from orbax_bench_core.analysis.recovery.figures import phases_figure
from orbax_bench_core.analysis.recovery.model import PairVerdict, Recovery, RecoverySeries
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
from orbax_bench_core.gate import Word

_ROLES: Final[dict[Word, Role]] = {"REGRESSION": "bad", "PASS": "good", "INCONCLUSIVE": "unsure"}
MOST_DRAWN: Final = 40


def recovery_document(recovery: Recovery) -> Document:
    """Returns drills for people; a terminal reads the result last."""
    result = Paragraph(Span(words.headline(recovery), strong=True))
    series = [element for drilled in recovery.series for element in _series(drilled)]
    verdicts = [element for verdict in recovery.verdicts for element in _verdict(verdict)]
    drawn = tuple(drilled for drilled in recovery.series if drilled.phases)[:MOST_DRAWN]
    figure = Figure(
        "Phases of a recovery, end to end", functools.partial(phases_figure, drawn), "phases.png"
    )
    return Document(
        title=f"Recovery: {recovery.suite}",
        elements=(
            Heading(f"Recovery: {recovery.suite}", level=1),
            result,
            *([figure] if drawn else []),
            *series,
            *verdicts,
            Section("How to read this", (Items(tuple(words.READING.splitlines())),)),
            Paragraph(f"Run {recovery.run_id}. Every number is in `recovery.json`.", "dim"),
        ),
        brief=(*series, *verdicts, result),
    )


def recovery_section(recovery: Recovery) -> Document:
    """Returns what the report of a run says of its drills, above the tables."""
    result = Paragraph(words.headline(recovery))
    series = [_below(element) for drilled in recovery.series for element in _series(drilled)]
    verdicts = [_below(element) for verdict in recovery.verdicts for element in _verdict(verdict)]
    more = Paragraph("Figure and explanations are in recovery.html.", "dim")
    elements = (Heading("Recovery"), result, *series, *verdicts, more)
    return Document(title=recovery.suite, elements=elements, brief=(result,))


def _below(element: Element) -> Element:
    """Returns an element below a heading, which has no headings of its own."""
    return Paragraph(element.text) if isinstance(element, Heading) else element


def _series(series: RecoverySeries) -> list[Element]:
    role: Role = "plain" if series.recovered == series.drills else "bad"
    elements: list[Element] = [Heading(Span(series.name))]
    total = series.phase("recovery")
    if total is not None:
        headings = [heading for heading in words.HEADINGS if total.added or heading not in _GIVEN]
        rows = [
            dict(zip(words.HEADINGS, words.phase_row(phase, total), strict=True))
            for phase in series.phases
        ]
        columns = (
            Column(name, "number" if name in words.NUMBERS else "fixed") for name in headings
        )
        table = Table(
            tuple(columns), tuple(Row(tuple(row[name] for name in headings)) for row in rows)
        )
        elements.append(table)
    elements.append(Paragraph(f"{words.success(series)}.", role))
    if series.steps_lost:
        elements.append(Paragraph(words.losses(series)))
    elements += [Paragraph(reason, "bad", mark="failed:") for reason in series.reasons]
    return elements


_GIVEN: Final = ("given", "with it")


def _verdict(verdict: PairVerdict) -> list[Element]:
    columns = tuple(
        Column(heading, "fixed" if heading in ("phase", "verdict") else "number")
        for heading in words.VERDICT_HEADINGS
    )
    rows = []
    for phase in verdict.phases:
        name, word, ratio, interval = words.verdict_row(phase)
        rows.append(Row((name, Span(word, _ROLES[phase.word]), ratio, interval)))
    heading = Heading(("Candidate against baseline: ", Span(verdict.point)))
    return [heading, Table(columns, tuple(rows))]
