"""Figures of a comparison: those of its page and those in files."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.analysis.verdicts.headlines import (
    nearest_to_trouble,
    primary_first,
    worst_first,
)
from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict, VerdictReport
from orbax_bench_core.analysis.verdicts.plots import draw_blocks, draw_intervals
from orbax_bench_core.analysis.verdicts.series_plot import draw_series
from orbax_bench_core.document import Figure, figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

MOST_POINTS: Final = 24
"""Points that have figures, the worst first: a page of hundreds could not be opened."""

FEW_POINTS: Final = 3
"""Number of points up to which those that pass have all figures too."""

_WIDTH: Final = 5.4
_HEIGHT: Final = 3.1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One drawing.

    Attributes:
        title: What it shows, in words.
        height: Inches that it needs.
        draw: Draws it on empty axes.
        fitted: Whether it has labels whose room must be measured.
    """

    title: str
    height: float
    draw: Callable[[Axes], None]
    fitted: bool = False


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


def page_figures(report: VerdictReport, point: PointVerdict) -> list[Figure]:
    """Returns the figures of one point of a comparison on a page, one drawing each."""
    panels = [interval_panel(report, point)]
    for operation in drawn_operations(report, point):
        panels += operation_panels(report, point, operation)
    return [Figure(panel.title, functools.partial(_figure, [panel])) for panel in panels]


def figure_files(report: VerdictReport, point: PointVerdict) -> list[Figure]:
    """Returns the figures of one point of a comparison as files, one for each operation."""
    panel = interval_panel(report, point)
    name = f"{_safe(point.point_id)}.png"
    files = [Figure(panel.title, functools.partial(_figure, [panel]), file=name)]
    for index, operation in enumerate(drawn_operations(report, point)):
        panels = operation_panels(report, point, operation)
        if panels:
            title = f"{operation.operation} of {point.point}: blocks and series"
            name = f"{_safe(point.point_id)}_{index}_{_safe(operation.operation)}.png"
            files.append(Figure(title, functools.partial(_figure, panels), file=name))
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
