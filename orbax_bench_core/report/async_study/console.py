"""An async study in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich import box
from rich.markup import escape
from rich.table import Table

from orbax_bench_core.compare.async_study.model import AsyncStudy
from orbax_bench_core.report.async_study import words

if TYPE_CHECKING:
    from rich.console import Console

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
