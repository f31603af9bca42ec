"""An async study as a Markdown page and as an HTML page that needs no other file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.compare.async_study.model import AsyncStudy, SizeSeries
from orbax_bench_core.report import figures, text
from orbax_bench_core.report.async_study import words

if TYPE_CHECKING:
    from markupsafe import Markup

MOST_FIGURES: Final = 20
"""Series that have figures: a page of hundreds could not be opened."""


def study_markdown(study: AsyncStudy) -> str:
    """Returns `async_study.md`: what the study found, as tables.

    Args:
        study: The study.
    """
    return _render("async_study.md.jinja", study)


def study_html(study: AsyncStudy) -> str:
    """Returns `async_study.html`: tables and figures; it follows the choice of light or dark.

    Args:
        study: The study.
    """
    from orbax_bench_core.report.async_study.plots import shares_svg, times_svg

    def drawings(series: SizeSeries) -> list[Markup]:
        from markupsafe import Markup

        drawn = (shares_svg(series, study.documented), times_svg(series))
        # Nothing of the user's is in them that was not escaped when they were drawn.
        return [Markup(svg) for svg in drawn]  # noqa: S704

    return _render("async_study.html.jinja", study, drawings=drawings)


def _render(template: str, study: AsyncStudy, **filters: Any) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("orbax_bench_core.report"),
        autoescape=template.endswith(".html.jinja"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        cell=text.table_cell,
        code=_code,
        fit_lines=words.fit_lines,
        row=words.row,
        variables=figures.variables,
        **filters,
    )
    return environment.get_template(template).render(
        study=study,
        headings=words.HEADINGS,
        numbers=words.NUMBERS,
        headline=words.headline(study),
        documented=words.documented(study.documented),
        reading=words.READING.splitlines(),
        most_figures=MOST_FIGURES,
    )


def _code(words_: str) -> Markup:
    """Returns text whose parts in backticks are set as code."""
    from markupsafe import Markup, escape

    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(words_)))
    return Markup(marked)  # noqa: S704
