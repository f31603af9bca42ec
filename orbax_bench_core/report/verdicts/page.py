"""What the Markdown page and the HTML page of a comparison share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

from orbax_bench_core.compare.verdict import OperationVerdict, PointVerdict, VerdictReport
from orbax_bench_core.report.verdicts import words
from orbax_bench_core.report.verdicts.ranking import (
    headline,
    primary_first,
    unmatched_line,
    worst_first,
)

HEADINGS: Final = ("metric", "ratio", "95 % interval", "verdict", "what to do")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation as cells with the columns of `HEADINGS`, and what speaks against it."""

    word: str
    primary: bool
    cells: tuple[str, ...]
    flags: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One point."""

    point: PointVerdict
    mark: str
    design: str
    remarks: tuple[str, ...]
    rows: tuple[Row, ...]


def render(template: str, report: VerdictReport, filters: dict[str, Callable[..., Any]]) -> str:
    """Returns a page.

    Args:
        template: File name of the template.
        report: The comparison.
        filters: What the template calls.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("orbax_bench_core.report"),
        autoescape=template.endswith(".html.jinja"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(filters)
    return environment.get_template(template).render(
        report=report,
        mark=words.MARKS[report.word],
        headline=headline(report),
        headings=HEADINGS,
        sections=[_section(point) for point in worst_first(report.points)],
        unmatched=[unmatched_line(found) for found in report.unmatched],
        meanings=words.MEANINGS,
        reading=words.READING,
        rules=words.rules(report.gate),
    )


def _section(point: PointVerdict) -> Section:
    return Section(
        point=point,
        mark=words.MARKS[point.word],
        design=words.design(point),
        remarks=tuple(words.remarks(point)),
        rows=tuple(_row(found, point) for found in primary_first(point)),
    )


def _row(found: OperationVerdict, point: PointVerdict) -> Row:
    verdict = found.verdict
    unpaired = " unpaired" if point.mode == "unpaired" else ""
    return Row(
        word=verdict.word,
        primary=found.primary,
        cells=(
            found.operation,
            words.ratio(verdict.ratio),
            words.interval(verdict),
            f"{words.MARKS[verdict.word]} {words.word_of(found)}{unpaired}",
            words.what_to_do(found),
        ),
        flags=tuple(words.flags(found)),
    )
