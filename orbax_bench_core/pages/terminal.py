"""Terminal renderer: a few lines, the last of which say what was found and what to do next."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, assert_never

from orbax_bench_core.errors import presentable
from orbax_bench_core.pages import elements as el
from orbax_bench_core.pages.numbers import UNIT, count

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text as RichText

_STYLES: Final[dict[el.Role, str]] = {
    "plain": "",
    "dim": "dim",
    "good": "green",
    "bad": "red",
    "unsure": "yellow",
}
_WITHIN: Final = re.compile(rf"(?<=\d) (?={UNIT})| (?=→ \d)|(?<=→) (?=\d)")
_JOINER: Final = "\ue000"
"""Stands for a space at which no line ends: Rich ends lines at no-break spaces, too."""
_LEAST: Final = 6
"""Characters of a column that may be wrapped."""
_MOST_LINES: Final = 10
"""Rows and groups of a table that are printed unless all details are wanted."""


def print_document(document: el.Document, console: Console, *, details: bool = False) -> None:
    """Prints the summary of an answer, its headline and the next command; or all there is.

    The headline comes last, where it is read first. Charts are left out.
    """
    shown = (*document.summary, *document.details) if details else document.summary
    _print(shown, console, most=None if details else _MOST_LINES)
    console.print()
    answer = document.headline
    word, text = answer.said.removesuffix(answer.text), _text(answer.text, "bold")
    _line(_text(word, f"bold {_STYLES[answer.role]}").append_text(text), console)
    if document.following is not None:
        _line(_text(document.following.caption), console)
        console.print(_text(f"Next: {document.following.text}"), highlight=False, soft_wrap=True)


def _print(elements: Iterable[el.Element], console: Console, *, most: int | None) -> None:
    for element in el.shown(elements):
        match element:
            case el.Text(text, role, items):
                for line in filter(None, (text, *(f"- {item}" for item in items))):
                    _line(_text(line, _STYLES[role]), console)
            case el.Code(text, caption):
                _print((el.Text(caption),), console, most=most)
                console.print(_text(text), highlight=False, soft_wrap=True)
            case el.Table():
                _print_table(element, console, most)
            case el.Details(heading, inner) | el.Section(heading, inner):
                if all(isinstance(each, el.Chart) for each in el.shown(inner)):
                    continue
                console.print()
                _line(_text(heading, "bold"), console)
                _print(inner, console, most=most)
            case el.Chart():
                pass
            case _:
                assert_never(element)


def _print_table(table: el.Table, console: Console, most: int | None) -> None:
    """Prints each group of rows below its name, and of a long table only the beginning."""
    table = el.without_pictures(table)
    rows = table.rows if most is None else table.rows[:most]
    shown = [tuple(column.heading for column in table.columns), *(row.cells for row in rows)]
    texts = [[el.as_cell(cell).text for cell in cells] for cells in zip(*shown, strict=True)]
    widths = [max(map(len, column)) for column in texts]
    # What does not fit is wrapped, numbers last, and no cell is cut.
    numbers = [column.kind == "number" for column in table.columns]
    for kept in ([True] * len(widths), numbers, [False] * len(widths)):
        least = [width if keep else _LEAST for width, keep in zip(widths, kept, strict=True)]
        if sum(least) + 2 * len(least) <= console.width:
            break
    for place, (group, found) in enumerate(itertools.groupby(rows, key=lambda row: row.group)):
        if group:
            _line(_text(group, "bold"), console)
        grid = _grid(table.columns, least, tuple(found), headed=place == 0)
        console.print(grid)
    if len(rows) < len(table.rows):
        more = count(len(table.rows) - len(rows), "more row")
        _line(_text(f"{more}: with --details", "dim"), console)


def _grid(
    columns: tuple[el.Column, ...], widths: list[int], rows: tuple[el.Row, ...], *, headed: bool
) -> RichTable:
    from rich.table import Table as RichTable

    grid = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=headed)
    for place, column in enumerate(columns):
        grid.add_column(
            _text(column.heading, "dim"),
            justify="right" if column.kind == "number" else "left",
            min_width=widths[place],
            overflow="fold",
        )
    for row in rows:
        cells = (_text(cell.text, _STYLES[cell.role]) for cell in map(el.as_cell, row.cells))
        grid.add_row(*cells, style="dim" if row.dim else None)
    return grid


def _line(text: RichText, console: Console) -> None:
    """Prints a line, which a log keeps whole so that it can be searched.

    A terminal gets it in several, none of which ends between a number and its unit, or at an arrow.
    """
    if not console.is_terminal:
        console.print(text, highlight=False, soft_wrap=True)
        return
    text.plain = _WITHIN.sub(_JOINER, text.plain)
    for line in text.wrap(console, console.width):
        line.plain = line.plain.replace(_JOINER, " ")
        console.print(line, highlight=False)


def _text(text: str, style: str = "") -> RichText:
    """Returns a text in which no character is markup or moves the cursor."""
    from rich.text import Text as RichText

    return RichText(presentable(text).replace("`", ""), style)
