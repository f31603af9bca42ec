"""Past runs in the terminal."""

from __future__ import annotations

from typing import Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from orbax_bench_core.compare.history.model import History, Series
from orbax_bench_core.report.history import words

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
