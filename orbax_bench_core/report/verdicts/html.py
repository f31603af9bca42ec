"""Verdicts as one HTML page that needs no other file and no network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from orbax_bench_core.compare.verdict import PointVerdict, VerdictReport
from orbax_bench_core.report import figures
from orbax_bench_core.report.verdicts.figures_of import (
    drawn_operations,
    interval_panel,
    operation_panels,
    panel_svg,
    plotted_points,
)
from orbax_bench_core.report.verdicts.page import render

if TYPE_CHECKING:
    from markupsafe import Markup


def verdicts_html(report: VerdictReport) -> str:
    """Returns `verdicts.html`: the verdict, every point, figures, and how to read them.

    It follows the reader's choice of light or dark. When there are very many points, only the worst
    have figures, and the page says so.

    Args:
        report: The comparison.
    """
    plotted = {point.point_id for point in plotted_points(report)}

    def drawings(point: PointVerdict) -> list[Markup]:
        return _drawings(report, point) if point.point_id in plotted else []

    return render(
        "verdicts.html.jinja",
        report,
        {"code": _code, "drawings": drawings, "variables": figures.variables},
    )


def _drawings(report: VerdictReport, point: PointVerdict) -> list[Markup]:
    from markupsafe import Markup

    panels = [interval_panel(report, point)]
    for found in drawn_operations(report, point):
        panels += operation_panels(report, found)
    # Nothing of the user's is in it that was not escaped when it was drawn.
    return [Markup(panel_svg(panel)) for panel in panels]  # noqa: S704


def _code(text: str) -> Markup:
    """Returns text whose parts in backticks are set as code."""
    from markupsafe import Markup, escape

    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(marked)  # noqa: S704
