"""Document of verdicts: the worst point first, advice, figures, and a reading aid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orbax_bench_core.analysis.verdicts import words
from orbax_bench_core.analysis.verdicts.brief import (
    MANY,
    ROLES,
    advice_on,
    brief_elements,
    meaning_of,
    numbers_of,
    operation_word,
    particulars,
    stamped,
    verdict_word,
)
from orbax_bench_core.analysis.verdicts.figures import figure_files, page_figures, plotted_points
from orbax_bench_core.analysis.verdicts.headlines import headline, primary_first, worst_first
from orbax_bench_core.analysis.verdicts.metrics import MetricsShown, metric_table
from orbax_bench_core.analysis.verdicts.model import PointVerdict, VerdictReport
from orbax_bench_core.analysis.verdicts.words import unmatched_line
from orbax_bench_core.document import (
    Callout,
    Cell,
    Column,
    Details,
    Document,
    Element,
    Facts,
    Filter,
    Group,
    Heading,
    Items,
    Only,
    Paragraph,
    Row,
    Section,
    Span,
    Table,
    Text,
)

_FEW: Final = 4
"""Number of points from which on HTML folds the figures of those that pass."""

_FIGURES: Final = (
    "Figures: the first of each point has every operation on one axis, with its 95 % interval "
    "(hollow: not primary). Below it are, for each primary operation, the ratio of every block in "
    "the order measured, and the times of both arms; for a point that passes among many, only for "
    "the operation nearest to trouble. A dashed line through times is a drift; hollow marks are "
    "the slow one of two regimes; rings are stalls, above the dotted line; a cross on the axis is "
    "an attempt that failed. Where every slot of a block was a life, a line joins the operations "
    "of each."
)


def verdicts_document(report: VerdictReport, metrics: MetricsShown = "changed") -> Document:
    """Returns verdicts for people.

    A page has figures, of the worst points only where there are very many. A wide terminal shows
    a table with advice beside the numbers; a narrow one, or what is no terminal, plain lines. When
    there are many points, those that pass have one line each there. A page has every metric, a
    terminal those that `metrics` says.
    """
    return Document(
        title=f"{stamped(report)}: {report.suite}",
        elements=_page(report),
        brief=brief_elements(report, metrics),
    )


def _page(report: VerdictReport) -> tuple[Element, ...]:
    points = worst_first(report.points)
    meanings, reading = words.MEANINGS.items(), words.READING
    if report.is_study:  # what decides about a release is not said
        meanings = {}.items()
        reading = (
            f"{words.STUDY}: {words.STUDY_MEANING}.",
            *(line for line in reading if "PASS" not in line),
        )
    unmatched = tuple(Span(unmatched_line(point)) for point in report.unmatched)
    rules = tuple(map(Span, words.rules(report.gate)))
    described = (f"{word}: {meaning}" for word, meaning in meanings)
    coloured = (
        (Span(word, ROLES[word], strong=True), f": {meaning}") for word, meaning in meanings
    )
    return (
        Only("html", _html_head(report)),
        Only("markdown", _markdown_head(report)),
        Heading("Verdicts"),
        *((_filter(points),) if len(points) > MANY else ()),
        *(_tables(points) if points else (Paragraph("There is no verdict."),)),
        Section("Points without a partner", (Items(unmatched),) if unmatched else ()),
        Section("Notes", (Items(report.remarks),) if report.remarks else ()),
        Only("html", (Section("Metrics", _metrics(points)),)),
        Only("html", (Section("Figures", _drawings(report, points)),)),
        Only("markdown", tuple(_point_section(report, point) for point in points)),
        Heading("How to read this"),
        Only("html", (Items((*coloured, *reading, _FIGURES)),)),
        Only("markdown", (Items((*described, *reading)),)),
        Section("The rules that were applied", (Items(rules),)),
    )


def _html_head(report: VerdictReport) -> tuple[Element, ...]:
    judged = f", judged {report.judged_at:%Y-%m-%d %H:%M} UTC"
    run = ("Candidate against baseline, run ", Span(report.run_id, code=True), judged)
    return (
        Heading(Span(report.suite), level=1),
        Paragraph(run, "dim"),
        Callout(verdict_word(report), Span(headline(report))),
        Facts(
            (
                ("verdict", f"{stamped(report)}: {meaning_of(report)}"),
                ("baseline", Span(report.baseline)),
                ("candidate", Span(report.candidate)),
            )
        ),
    )


def _markdown_head(report: VerdictReport) -> tuple[Element, ...]:
    judged = f", judged {report.judged_at:%Y-%m-%d %H:%M} UTC"
    return (
        Heading((verdict_word(report), f": {report.suite}"), level=1),
        Paragraph(headline(report)),
        Facts(
            (
                ("verdict", f"{stamped(report)}, that is, {meaning_of(report)}"),
                ("baseline", Span(report.baseline, code=True)),
                ("candidate", Span(report.candidate, code=True)),
                ("run", (Span(report.run_id, code=True), judged)),
            )
        ),
    )


def _filter(points: Sequence[PointVerdict]) -> Filter:
    names = {point.point_id: f"{point.point} {point.point_id}" for point in points}
    return Filter("points", names, {"verdict": {each.point_id: each.word for each in points}})


def _tables(points: Sequence[PointVerdict]) -> tuple[Element, ...]:
    columns = (
        Column("metric"),
        Column("95 % interval", "fixed"),
        Column("ratio", "number"),
        Column("verdict", "fixed"),
        Column("what to do", "prose"),
    )
    html = tuple(map(_html_group, points))
    markdown = tuple(map(_markdown_group, points))
    return (
        Only("html", (Table(columns, groups=html),)),
        Only("markdown", (Table(columns, groups=markdown, keys=("point",)),)),
    )


def _html_group(point: PointVerdict) -> Group:
    about = particulars(point)
    rows = (
        Row(
            (
                *map(Span, numbers_of(operation)),
                operation_word(operation, point, strong=True),
                Cell(advice_on(operation, point), tuple(words.flags(operation))),
            ),
            dim=not operation.primary,
        )
        for operation in primary_first(point)
    )
    return Group(
        label=(verdict_word(point), " ", Span(point.point), " ", Span(about, "dim")),
        rows=tuple(rows),
        intro=tuple(map(Paragraph, _remarks(point))),
        key=point.point_id,
    )


def _markdown_group(point: PointVerdict) -> Group:
    """Returns the rows of a point; one without operations has a row that says why."""
    rows = []
    for operation in primary_first(point):
        name, *numbers = numbers_of(operation)
        cells = (*map(Span, numbers), operation_word(operation, point))
        rows.append(Row((Span(name, code=True), *cells, advice_on(operation, point))))
    nothing = Row(("–", "–", "–", verdict_word(point), " ".join(words.remarks(point))))
    return Group(
        label=Span(point.point),
        keys=(Span(point.point, code=True),),
        rows=tuple(rows) or (nothing,),
    )


def _metrics(points: Sequence[PointVerdict]) -> tuple[Element, ...]:
    return tuple(
        Details(
            (Span(point.point), Span(f" {len(point.metrics)} metrics", "dim")), metric_table(point)
        )
        for point in points
        if point.metrics
    )


def _remarks(point: PointVerdict) -> list[str]:
    remarks = words.remarks(point)
    return [f"failed: {remarks[0]}", *remarks[1:]] if point.failed and remarks else remarks


def _drawings(report: VerdictReport, points: Sequence[PointVerdict]) -> tuple[Element, ...]:
    plotted = plotted_points(report)
    elements: list[Element] = []
    for point in plotted:
        summary = (verdict_word(point, strong=True), " ", Span(point.point))
        opened = point.word != "PASS" or len(points) < _FEW
        elements.append(Details(summary, tuple(page_figures(report, point)), open=opened))
    if len(plotted) < len(points):
        bare = f"{len(points) - len(plotted)} more points have no figures here"
        elements.append(Paragraph(f"{bare}; their numbers are in the table above.", "dim"))
    return tuple(elements)


def _point_section(report: VerdictReport, point: PointVerdict) -> Section:
    """Returns what Markdown says of a point below the table, if there is anything to say."""
    items: list[Text] = list(_remarks(point))
    for operation in primary_first(point):
        name = Span(operation.operation, code=True)
        items += [("! ", name, f" {flag}") for flag in words.flags(operation)]
    figures = figure_files(report, point) if point in plotted_points(report) else ()
    decided = words.decided(point)
    said = f"{stamped(point)}{f' ({decided})' if decided else ''}, {words.design(point)}, id "
    return Section(
        ("" if point.is_study else f"{words.MARKS[point.word]} ", Span(point.point, code=True)),
        (*((Items(tuple(items)),) if items else ()), *figures, *metric_table(point)),
        lead=(Paragraph((said, Span(point.point_id, code=True))),),
    )
