"""Document of verdicts: the worst point first, advice, figures, and a reading aid."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core import document as doc
from orbax_bench_core.analysis.verdicts import words
from orbax_bench_core.analysis.verdicts.brief import (
    MANY,
    advice_on,
    brief_elements,
    meaning_of,
    numbers_of,
    operation_word,
    particulars,
    stamped,
    verdict_word,
)
from orbax_bench_core.analysis.verdicts.headlines import (
    headline,
    nearest_to_trouble,
    primary_first,
    worst_first,
)
from orbax_bench_core.analysis.verdicts.metrics import MetricsShown, metric_table
from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict, VerdictReport
from orbax_bench_core.analysis.verdicts.plots import draw_blocks, draw_intervals, draw_series
from orbax_bench_core.analysis.verdicts.words import unmatched_line
from orbax_bench_core.document import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

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


def verdicts_document(report: VerdictReport, metrics: MetricsShown = "changed") -> doc.Document:
    """Returns verdicts for people.

    A page has figures, of the worst points only where there are very many. A wide terminal shows
    a table with advice beside the numbers; a narrow one, or what is no terminal, plain lines. When
    there are many points, those that pass have one line each there. A page has every metric, a
    terminal those that `metrics` says.
    """
    return doc.Document(
        title=f"{stamped(report)}: {report.suite}",
        elements=_page(report),
        brief=brief_elements(report, metrics),
    )


def _page(report: VerdictReport) -> tuple[doc.Element, ...]:
    points = worst_first(report.points)
    meanings, reading = words.MEANINGS.items(), words.READING
    if report.is_study:  # what decides about a release is not said
        meanings = {}.items()
        reading = (
            f"{words.STUDY}: {words.STUDY_MEANING}.",
            *(line for line in reading if "PASS" not in line),
        )
    unmatched = tuple(doc.Span(unmatched_line(point)) for point in report.unmatched)
    rules = tuple(map(doc.Span, words.rules(report.gate)))
    described = (f"{word}: {meaning}" for word, meaning in meanings)
    coloured = ((doc.Span.judged(word, strong=True), f": {meaning}") for word, meaning in meanings)
    return (
        doc.Only("html", _html_head(report)),
        doc.Only("markdown", _markdown_head(report)),
        doc.Heading("Verdicts"),
        *((_filter(points),) if len(points) > MANY else ()),
        *(_tables(points) if points else (doc.Paragraph("There is no verdict."),)),
        doc.Section("Points without a partner", (doc.Items(unmatched),) if unmatched else ()),
        doc.Section("Notes", (doc.Items(report.remarks),) if report.remarks else ()),
        doc.Only("html", (doc.Section("Metrics", _metrics(points)),)),
        doc.Only("html", (doc.Section("Figures", _drawings(report, points)),)),
        doc.Only("markdown", tuple(_point_section(report, point) for point in points)),
        doc.Heading("How to read this"),
        doc.Only("html", (doc.Items((*coloured, *reading, _FIGURES)),)),
        doc.Only("markdown", (doc.Items((*described, *reading)),)),
        doc.Section("The rules that were applied", (doc.Items(rules),)),
    )


def _html_head(report: VerdictReport) -> tuple[doc.Element, ...]:
    judged = f", judged {report.judged_at:%Y-%m-%d %H:%M} UTC"
    run = ("Candidate against baseline, run ", doc.Span(report.run_id, code=True), judged)
    return (
        doc.Heading(doc.Span(report.suite), level=1),
        doc.Paragraph(run, "dim"),
        doc.Callout(verdict_word(report), doc.Span(headline(report))),
        doc.Facts(
            (
                ("verdict", f"{stamped(report)}: {meaning_of(report)}"),
                ("baseline", doc.Span(report.baseline)),
                ("candidate", doc.Span(report.candidate)),
            )
        ),
    )


def _markdown_head(report: VerdictReport) -> tuple[doc.Element, ...]:
    judged = f", judged {report.judged_at:%Y-%m-%d %H:%M} UTC"
    return (
        doc.Heading((verdict_word(report), f": {report.suite}"), level=1),
        doc.Paragraph(headline(report)),
        doc.Facts(
            (
                ("verdict", f"{stamped(report)}, that is, {meaning_of(report)}"),
                ("baseline", doc.Span(report.baseline, code=True)),
                ("candidate", doc.Span(report.candidate, code=True)),
                ("run", (doc.Span(report.run_id, code=True), judged)),
            )
        ),
    )


def _filter(points: Sequence[PointVerdict]) -> doc.Filter:
    names = {point.point_id: f"{point.point} {point.point_id}" for point in points}
    return doc.Filter("points", names, {"verdict": {each.point_id: each.word for each in points}})


def _tables(points: Sequence[PointVerdict]) -> tuple[doc.Element, ...]:
    columns = (
        doc.Column("metric"),
        doc.Column("95 % interval", "fixed"),
        doc.Column("ratio", "number"),
        doc.Column("verdict", "fixed"),
        doc.Column("what to do", "prose"),
    )
    html = tuple(map(_html_group, points))
    markdown = tuple(map(_markdown_group, points))
    return (
        doc.Only("html", (doc.Table(columns, groups=html),)),
        doc.Only("markdown", (doc.Table(columns, groups=markdown, keys=("point",)),)),
    )


def _html_group(point: PointVerdict) -> doc.Group:
    about = particulars(point)
    rows = (
        doc.Row(
            (
                *map(doc.Span, numbers_of(operation)),
                operation_word(operation, point, strong=True),
                doc.Cell(advice_on(operation, point), tuple(words.flags(operation))),
            ),
            dim=not operation.primary,
        )
        for operation in primary_first(point)
    )
    return doc.Group(
        label=(verdict_word(point), " ", doc.Span(point.point), " ", doc.Span(about, "dim")),
        rows=tuple(rows),
        intro=tuple(map(doc.Paragraph, _remarks(point))),
        key=point.point_id,
    )


def _markdown_group(point: PointVerdict) -> doc.Group:
    """Returns the rows of a point; one without operations has a row that says why."""
    rows = []
    for operation in primary_first(point):
        name, *numbers = numbers_of(operation)
        cells = (*map(doc.Span, numbers), operation_word(operation, point))
        rows.append(doc.Row((doc.Span(name, code=True), *cells, advice_on(operation, point))))
    nothing = doc.Row(("–", "–", "–", verdict_word(point), " ".join(words.remarks(point))))
    return doc.Group(
        label=doc.Span(point.point),
        keys=(doc.Span(point.point, code=True),),
        rows=tuple(rows) or (nothing,),
    )


def _metrics(points: Sequence[PointVerdict]) -> tuple[doc.Element, ...]:
    return tuple(
        doc.Details(
            (doc.Span(point.point), doc.Span(f" {len(point.metrics)} metrics", "dim")),
            metric_table(point),
        )
        for point in points
        if point.metrics
    )


def _remarks(point: PointVerdict) -> list[str]:
    remarks = words.remarks(point)
    return [f"failed: {remarks[0]}", *remarks[1:]] if point.failed and remarks else remarks


def _drawings(report: VerdictReport, points: Sequence[PointVerdict]) -> tuple[doc.Element, ...]:
    plotted = plotted_points(report)
    elements: list[doc.Element] = []
    for point in plotted:
        summary = (verdict_word(point, strong=True), " ", doc.Span(point.point))
        opened = point.word != "PASS" or len(points) < _FEW
        elements.append(doc.Details(summary, tuple(page_figures(report, point)), open=opened))
    if len(plotted) < len(points):
        bare = f"{len(points) - len(plotted)} more points have no figures here"
        elements.append(doc.Paragraph(f"{bare}; their numbers are in the table above.", "dim"))
    return tuple(elements)


def _point_section(report: VerdictReport, point: PointVerdict) -> doc.Section:
    """Returns the Markdown below the table of a point, if there is anything to say."""
    items: list[doc.Text] = list(_remarks(point))
    for operation in primary_first(point):
        name = doc.Span(operation.operation, code=True)
        items += [("! ", name, f" {flag}") for flag in words.flags(operation)]
    figures = figure_files(report, point) if point in plotted_points(report) else ()
    decided = words.decided(point)
    said = f"{stamped(point)}{f' ({decided})' if decided else ''}, {words.design(point)}, id "
    return doc.Section(
        ("" if point.is_study else f"{words.MARKS[point.word]} ", doc.Span(point.point, code=True)),
        (*((doc.Items(tuple(items)),) if items else ()), *figures, *metric_table(point)),
        lead=(doc.Paragraph((said, doc.Span(point.point_id, code=True))),),
    )


MOST_POINTS: Final = 24
"""Points that have figures, the worst first: a page of hundreds could not be opened."""

FEW_POINTS: Final = 3
"""Number of points up to which those that pass have all figures too."""

_WIDTH: Final = 5.4
_HEIGHT: Final = 3.1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One drawing."""

    title: str  # what it shows, in words
    height: float  # inches that it needs
    draw: Callable[[Axes], None]  # draws it on empty axes
    fitted: bool = False  # whether it has labels whose room must be measured


def plotted_points(report: VerdictReport) -> list[PointVerdict]:
    """Returns the points of a comparison that have figures, the worst first."""
    return [point for point in worst_first(report.points) if point.operations][:MOST_POINTS]


def interval_panel(report: VerdictReport, point: PointVerdict) -> Panel:
    """Returns the drawing of the intervals of all operations of a point, which has some."""
    return Panel(
        title=f"Intervals of the ratios of {point.point}",
        height=1.05 + 0.3 * len(point.operations),
        draw=lambda axes: draw_intervals(axes, point, report.gate),
        fitted=True,
    )


def operation_panels(
    report: VerdictReport, point: PointVerdict, operation: OperationVerdict
) -> list[Panel]:
    """Returns the drawings of an operation: its blocks where it is paired, and its series."""
    panels = []
    if operation.block_log_ratios:
        panels.append(
            Panel(
                title=f"Ratio of candidate to baseline of {operation.operation} in each block",
                height=_HEIGHT,
                draw=lambda axes: draw_blocks(
                    axes, operation, report.gate.rule(operation.operation)
                ),
            )
        )
    if any(operation.times.values()):
        panels.append(
            Panel(
                title=f"Times of {operation.operation} in both arms in the order measured",
                height=_HEIGHT,
                draw=lambda axes: draw_series(axes, point, operation),
            )
        )
    return panels


def drawn_operations(report: VerdictReport, point: PointVerdict) -> list[OperationVerdict]:
    """Returns the operations of a point that have figures of their own.

    Those are the primary ones and what has regressed; the others are among the intervals. Of a
    point that passes, among more than a few, it is the primary one nearest to trouble.
    """
    if point.word == "PASS" and len(report.points) > FEW_POINTS:
        nearest = nearest_to_trouble(point)
        return [] if nearest is None else [nearest]
    return [
        operation
        for operation in primary_first(point)
        if operation.primary or operation.verdict.word == "REGRESSION"
    ]


def page_figures(report: VerdictReport, point: PointVerdict) -> list[doc.Figure]:
    """Returns the figures of one point of a comparison on a page, one drawing each."""
    panels = [interval_panel(report, point)]
    for operation in drawn_operations(report, point):
        panels += operation_panels(report, point, operation)
    return [doc.Figure(panel.title, functools.partial(_figure, [panel])) for panel in panels]


def figure_files(report: VerdictReport, point: PointVerdict) -> list[doc.Figure]:
    """Returns the figures of one point of a comparison as files, one for each operation."""
    panel = interval_panel(report, point)
    name = f"{_safe(point.point_id)}.png"
    files = [doc.Figure(panel.title, functools.partial(_figure, [panel]), file=name)]
    for index, operation in enumerate(drawn_operations(report, point)):
        panels = operation_panels(report, point, operation)
        if panels:
            title = f"{operation.operation} of {point.point}: blocks and series"
            name = f"{_safe(point.point_id)}_{index}_{_safe(operation.operation)}.png"
            files.append(doc.Figure(title, functools.partial(_figure, panels), file=name))
    return files


def _figure(panels: Sequence[Panel]) -> Drawing:
    """Returns drawings side by side; to be called inside `figures.style`."""
    width, height = _WIDTH * len(panels), max(panel.height for panel in panels)
    fitted = any(panel.fitted for panel in panels)
    figure = figures.new_figure(width, height, fitted=fitted)
    if not fitted:
        # Axes of one size stand under each other in columns.
        figure.subplots_adjust(
            left=0.65 / width,
            right=1 - 0.15 / width,
            top=1 - 0.3 / height,
            bottom=0.95 / height,
            wspace=0.16,
        )
    row = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, panel in zip(row, panels, strict=True):
        panel.draw(axes)
    return figure


def _safe(name: str) -> str:
    """Returns a name as a part of a file name and of a link."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", name)[:60]
