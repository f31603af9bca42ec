"""An async study as a Markdown page and as an HTML page that needs no other file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.markup import escape
from rich.table import Table

from orbax_bench_core import document
from orbax_bench_core.analysis.async_study import words
from orbax_bench_core.analysis.async_study.model import AsyncStudy, SizeSeries
from orbax_bench_core.document import figures

if TYPE_CHECKING:
    from markupsafe import Markup
    from rich.console import Console


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
    from orbax_bench_core.analysis.async_study.figures import shares_svg, times_svg

    def drawings(series: SizeSeries) -> list[Markup]:
        from markupsafe import Markup

        drawn = (shares_svg(series, study.documented), times_svg(series))
        # Nothing of the user's is in them that was not escaped when they were drawn.
        return [Markup(svg) for svg in drawn]  # noqa: S704

    return _render("async_study.html.jinja", study, drawings=drawings)


def _render(template: str, study: AsyncStudy, **filters: Any) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("orbax_bench_core.document"),
        autoescape=template.endswith(".html.jinja"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        cell=document.table_cell,
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


WIDE: Final = 140
"""Columns from which on there is room for total times beside blocked ones."""


def print_study(study: AsyncStudy, console: Console) -> None:
    """Prints a table per series, what the lines say, notes, and what it all comes to.

    A narrow terminal shows the blocked times alone.

    Args:
        study: The study.
        console: Where to.
    """
    shown = words.HEADINGS if console.width >= WIDE else words.BLOCKED
    for series in study.series:
        table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
        for heading in shown:
            number = heading in words.NUMBERS
            table.add_column(heading, justify="right" if number else "left", overflow="fold")
        for size in series.sizes:
            cells = dict(zip(words.HEADINGS, words.row(size), strict=True))
            table.add_row(*(escape(cells[heading]) for heading in shown))
        _say(f"[bold]{escape(series.name)}[/]", console)
        console.print(table)
        for line in words.fit_lines(series):
            _say(f"[dim]{escape(line)}[/]", console)
    for note in study.notes:
        _say(f"[yellow]note:[/] {escape(note)}", console)
    _say(f"[bold]{escape(words.headline(study))}[/]", console)
    _say(f"[dim]{escape(words.documented(study.documented))}[/]", console)


def _say(markup: str, console: Console) -> None:
    console.print(markup, highlight=False, soft_wrap=True)
