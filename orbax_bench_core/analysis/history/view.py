"""Past runs in the terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from orbax_bench_core.analysis.history import words
from orbax_bench_core.analysis.history.model import History, Series
from orbax_bench_core.document import figures

if TYPE_CHECKING:
    from markupsafe import Markup


_LAST: Final = 10
"""Runs of a series of seconds that are shown."""


def print_history(history: History, console: Console, *, every: bool = False) -> None:
    """Prints a history: series that changed first, what to know of them, and what it all says.

    Args:
        history: The history.
        console: Where to.
        every: Whether to show operations that decide no verdict, too.
    """
    series = words.shown(history, every=every)
    for one in series:
        _print_series(one, console)
    for remark, count in words.remarks(series).items():
        several = f"{count} series: " if count > 1 else ""
        _say(f"[dim]note:[/] {escape(several + remark)}", console)
    for line in history.passed_over:
        _say(f"[yellow]passed over:[/] {escape(line)}", console)
    hidden = len(history.series) - len(series)
    if hidden:
        _say(
            f"[dim]{hidden} series of operations that decide nothing: --all shows them.[/]", console
        )
    _say(f"[bold]{escape(words.headline(history, series))}[/]", console)


def _print_series(series: Series, console: Console) -> None:
    _say(
        f"[bold]{escape(series.point)}[/] [dim]{series.point_id}[/] "
        f"[bold]{escape(series.operation)}[/]",
        console,
    )
    _say(f"  {words.sparkline(series)}  [dim]{escape(words.sides(series))}[/]", console)
    if series.kind == "seconds":
        left_out = len(series.runs) - _LAST
        if left_out > 0:
            _say(f"  [dim]the last {_LAST} of {len(series.runs)} runs:[/]", console)
        cells = [words.run_row(series, run) for run in series.runs[-_LAST:]]
        console.print(_table(words.RUN_HEADINGS, cells))
        return
    found = words.rows(series)
    console.print(
        _table(
            words.HEADINGS if series.changes else words.HEADINGS[:4],
            [row.cells if series.changes else row.cells[:4] for row in found],
        )
    )
    for row in found:
        if row.change is not None:
            colour = "red" if row.slower else "green"
            said = escape(f"{words.effect(row.change)} {words.between(series, row.change)}")
            _say(f"  [{colour}]{said}[/]", console)
    console.print()


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    table.add_column("")
    for heading in headings:
        number = heading in ("runs", "ratio", "change", "p", "n", "median", "spread")
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for cells in rows:
        table.add_row("", *map(escape, cells))
    return table


def _say(markup: str, console: Console) -> None:
    console.print(markup, highlight=False, soft_wrap=True)


MOST_FIGURES: Final = 60
"""Series that have a figure: a page of thousands could not be opened."""


def history_html(history: History, *, every: bool = False) -> str:
    """Returns a page with every series, where it changed, and how to read it.

    Args:
        history: The history.
        every: Whether to show operations that decide no verdict, too.
    """
    import jinja2

    from orbax_bench_core.analysis.history.figures import series_svg

    series = words.shown(history, every=every)

    def drawing(one: Series) -> Markup:
        from markupsafe import Markup

        # Nothing of the user's is in it that was not escaped when it was drawn.
        return Markup(series_svg(one))  # noqa: S704

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("orbax_bench_core.document"),
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
