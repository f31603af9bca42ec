"""Past runs as one HTML page that needs no other file and no network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from orbax_bench_core.compare.history.model import History, Series
from orbax_bench_core.report import figures
from orbax_bench_core.report.history import words

if TYPE_CHECKING:
    from markupsafe import Markup

MOST_FIGURES: Final = 60
"""Series that have a figure: a page of thousands could not be opened."""


def history_html(history: History, *, every: bool = False) -> str:
    """Returns a page with every series, where it changed, and how to read it.

    Args:
        history: The history.
        every: Whether to show operations that decide no verdict, too.
    """
    import jinja2

    from orbax_bench_core.report.history.plots import series_svg

    series = words.shown(history, every=every)

    def drawing(one: Series) -> Markup:
        from markupsafe import Markup

        # Nothing of the user's is in it that was not escaped when it was drawn.
        return Markup(series_svg(one))  # noqa: S704

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("orbax_bench_core.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        code=_code,
        drawing=drawing,
        variables=figures.variables,
        rows=words.rows,
        sides=words.sides,
    )
    significance = f"{100 * history.significance:.3g} %"
    return environment.get_template("history.html.jinja").render(
        history=history,
        series=series,
        most_figures=MOST_FIGURES,
        headline=words.headline(history, series),
        headings=words.HEADINGS,
        every_headings=words.RUN_HEADINGS,
        run_row=words.run_row,
        between=words.between,
        remarks=words.remarks(series),
        reading=words.READING.format(significance=significance).splitlines(),
        hidden=len(history.series) - len(series),
    )


def _code(text: str) -> Markup:
    """Returns text whose parts in backticks are set as code."""
    from markupsafe import Markup, escape

    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(marked)  # noqa: S704
