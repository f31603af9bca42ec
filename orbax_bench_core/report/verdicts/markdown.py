"""Verdicts as a Markdown page."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from orbax_bench_core.compare.verdict import PointVerdict, VerdictReport
from orbax_bench_core.report.figures import shorten
from orbax_bench_core.report.verdicts.figures_of import plot_files, plotted_points
from orbax_bench_core.report.verdicts.page import render

_LONGEST: Final = 120


def verdicts_markdown(report: VerdictReport, *, plots: str | None) -> str:
    """Returns `verdicts.md`: the verdict, every point, and how to read them.

    Args:
        report: The comparison.
        plots: Link from the page to the folder into which `write_plots` wrote; None leaves figures
            out.
    """
    plotted = {point.point_id for point in plotted_points(report)}

    def images(point: PointVerdict) -> list[str]:
        if plots is None or point.point_id not in plotted:
            return []
        folder = quote(plots.rstrip("/"), safe="/:.")
        return [
            f"![{_prose(shorten(file.title, _LONGEST))}]({folder}/{quote(file.name)})"
            for file in plot_files(report, point)
        ]

    return render(
        "verdicts.md.jinja",
        report,
        {"code": _code, "prose": _prose, "prose_cell": _prose_cell, "images": images},
    )


def _code(text: str) -> str:
    """Returns a name as a code span, in which nothing is markup, for a table or elsewhere."""
    plain = " ".join(text.split()).replace("|", "\\|")
    longest = max(map(len, re.findall("`+", plain)), default=0)
    fence = "`" * (longest + 1)
    space = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{space}{plain}{space}{fence}"


def _prose(text: str) -> str:
    """Returns a sentence on one line, in which only backticks are markup."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\*\[\]])", r"\\\1", plain)


def _prose_cell(text: str) -> str:
    """Returns a sentence as the cell of a table, which a bar would end."""
    return _prose(text).replace("|", "\\|")
