"""Terminal renderer: documents on a console or in a log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, assert_never

from orbax_bench_core.document import elements as el
from orbax_bench_core.errors import presentable
from orbax_bench_core.pages import UNIT

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text as RichText

_WORD: Final = re.compile(rf"\s*\S+(?:(?<=\d) {UNIT}\S*)*\s*|\s+")
_PART: Final = re.compile(r"[^,]*,+\s*|[^,]+")


def folded(text: RichText, width: int) -> list[RichText]:
    """Returns the lines of a text on a terminal of so many columns.

    What is longer than a line, such as the name of a point with its options, is broken behind
    commas, and inside a word only where there is none.
    """
    lines = []
    for line in text.split("\n", allow_blank=True) or [text]:
        for part in line.divide(_breaks(line.plain, max(width, 1))):
            part.rstrip()
            lines.append(part)
    return lines


def _breaks(line: str, width: int) -> Iterator[int]:
    used = at = 0
    for part in _parts(line, width):
        size = len(part.rstrip())
        if used and used + size > width:
            yield at
            used = 0
        for cut in range(width, size, width):
            yield at + cut
            used = -cut
        used += len(part)
        at += len(part)


def _parts(line: str, width: int) -> Iterator[str]:
    """Yields what is kept on one line where it fits on one."""
    for word in _WORD.findall(line):
        if len(word.rstrip()) <= width:
            yield word
        else:
            yield from _PART.findall(word)


_STYLES: Final[dict[el.Role, str]] = {
    "plain": "",
    "dim": "dim",
    "good": "green",
    "bad": "red",
    "unsure": "yellow",
}


_AT_ONCE: Final = 1000
"""Lines of a table that are printed together."""


def print_document(document: el.Document, console: Console) -> None:
    """Prints what a document has for a terminal; figures are left out."""
    _print(document.elements if document.brief is None else document.brief, console)


def _print(elements: Iterable[el.Element], console: Console) -> None:
    for element in elements:
        _print_element(element, console)


def _print_element(element: el.Element, console: Console) -> None:
    match element:
        case el.Heading():
            _print_paragraph(el.Paragraph(el.Span(el.plain(element.text), strong=True)), console)
        case el.Paragraph():
            _print_paragraph(element, console)
        case el.Items():
            for item in element.items:
                _print_paragraph(el.Paragraph(item, mark="-"), console)
        case el.Code():
            for line in element.text.splitlines():
                _print_paragraph(el.Paragraph(el.Span(line), indent=2, fold="whole"), console)
        case el.Facts():
            width = max((len(name) for name, _ in element.pairs), default=0)
            for name, fact in element.pairs:
                _print_paragraph(el.Paragraph(fact, mark=f"{name:{width}} ", indent=2), console)
        case el.Table():
            _print_table(element, console)
        case el.Callout():
            _print_paragraph(el.Paragraph(element.text, mark=(element.word, ":")), console)
        case el.Details():
            _print((el.Paragraph(element.summary), *element.elements), console)
        case el.Section():
            _print((el.Heading(element.heading), *element.lead, *element.elements), console)
        case el.Figure() | el.Plot() | el.Legend() | el.Filter() | el.Only():
            pass
        case el.ByWidth():
            wide = console.width >= element.least and (console.is_terminal or not element.terminal)
            _print(element.wide if wide else element.narrow, console)
        case _:
            assert_never(element)


def _print_paragraph(paragraph: el.Paragraph, console: Console) -> None:
    text = _line(paragraph.text, paragraph.role)
    mark = _line(paragraph.mark)
    if paragraph.fold == "hanging" and console.is_terminal:
        _print_lines(_hanging(mark, text, paragraph.indent, console.width), console)
        return
    if mark:
        text = mark.append(" ").append_text(text)
    if paragraph.indent:
        text = _line(" " * paragraph.indent).append_text(text)
    console.print(text, highlight=False, soft_wrap=None if paragraph.fold == "wrapped" else True)


def _hanging(mark: RichText, text: RichText, indent: int, width: int) -> list[RichText]:
    """Returns a text below its first word behind a mark or, where that is long, below the mark."""
    start = _line(" " * indent).append_text(mark)
    left = start.cell_len + (1 if mark else 0)
    lines = []
    if left > width / 2 and left + text.cell_len > width:
        lines, left = [start], indent + 2
        start = _line("")
    for part in folded(text, width - left):
        start.pad_right(left - start.cell_len)
        lines.append(start.append_text(part))
        start = _line("")
    return lines


def _print_table(table: el.Table, console: Console) -> None:
    if table.groups:
        _print_groups(table, console)
        return
    apart = next((place for place, each in enumerate(table.columns) if each.apart), None)
    if apart is not None:
        _print_apart(table, apart, console)
        return
    from rich.padding import Padding

    grid = _ruled(table) if table.ruled else _unruled(table)
    for row in table.rows:
        cells = [_cell(cell) for cell in row.cells]
        first = [_line("")] if table.indented and table.ruled else []
        grid.add_row(*first, *cells, style="dim" if row.dim else None)
    console.print(Padding(grid, (0, 0, 0, 2)) if table.indented and not table.ruled else grid)


def _ruled(table: el.Table) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable

    grid = RichTable(box=box.SIMPLE, show_edge=False, pad_edge=False)
    if table.indented:
        grid.add_column("")
    for column in table.columns:
        grid.add_column(
            _line(column.heading),
            justify="right" if column.kind == "number" else "left",
            overflow="fold",
            no_wrap=column.whole,
        )
    return grid


def _unruled(table: el.Table) -> RichTable:
    """Returns an empty table of columns of given widths; the last has what is left."""
    from rich.table import Table as RichTable

    grid = RichTable(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=True
    )
    for column in table.columns:
        grid.add_column(
            _line(column.heading),
            justify="right" if column.kind == "number" else "left",
            width=column.width,
            ratio=1 if column.width is None else None,
            overflow="fold" if column.width is None else "ellipsis",
            no_wrap=column.width is not None,
        )
    return grid


def _print_apart(table: el.Table, apart: int, console: Console) -> None:
    """Prints a table in which long cells of one column stand above those after them."""
    heading = el.Row(tuple(el.Span(column.heading, strong=table.ruled) for column in table.columns))
    rows = [[_cell(cell) for cell in row.cells] for row in (heading, *table.rows)]
    widths = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
    gap, indent = 3 if table.ruled else 2, 2 if table.indented else 0
    room = console.width - indent - gap * (len(widths) - 1) - sum(widths) + widths[apart]
    spare = [column.heading for column in table.columns if column.spare]
    if spare and room < rows[0][apart].cell_len:
        kept = table.only({column.heading for column in table.columns if not column.spare})
        _print_apart(kept, apart, console)
        told = f"Not shown, because the terminal is narrow: {', '.join(spare)}."
        _print_paragraph(el.Paragraph(told, "dim"), console)
        return
    widths[apart] = min(widths[apart], max(room, rows[0][apart].cell_len))
    left = indent + sum(widths[:apart]) + gap * apart

    def padded(cells: Sequence[RichText], first: int) -> RichText:
        line = _line("")
        for place, cell in enumerate(cells, start=first):
            kind = table.columns[place].kind
            cell.align("right" if kind == "number" else "left", widths[place])
            line.append_text(cell).append(" " * gap)
        return line

    lines: list[RichText] = []
    dim = (not table.ruled, *(row.dim for row in table.rows))
    roles: list[el.Role] = ["dim" if each else "plain" for each in dim]
    for cells, role in zip(rows, roles, strict=True):
        line = _line(" " * indent, role).append_text(padded(cells[:apart], 0))
        if cells[apart].cell_len > widths[apart]:
            for part in folded(cells[apart], console.width - left):
                lines.append(line.append_text(part))
                line = _line(" " * left, role)
            cells[apart] = _line("")
        line.append_text(padded(cells[apart:], apart)).rstrip()
        if line:
            lines.append(line)
    if table.ruled:
        lines.insert(1, _line(" " * indent + "─" * (sum(widths) + gap * (len(widths) - 1))))
    _print_lines(lines, console)


def _print_groups(table: el.Table, console: Console) -> None:
    """Prints one line per row below the label of its group, in columns that all groups share."""
    headings = el.Row(tuple(column.heading for column in table.columns))
    rows = [headings, *(row for group in table.groups for row in group.rows)]
    widths = [max(map(len, column)) for column in zip(*map(_plain_cells, rows), strict=True)]

    def line(row: el.Row) -> str:
        padded = (
            cell.rjust(width) if column.kind == "number" else cell.ljust(width)
            for column, cell, width in zip(table.columns, _plain_cells(row), widths, strict=True)
        )
        return "  " + "  ".join(padded)

    lines = [_line(line(headings), "dim")]
    for group in table.groups:
        label = _line(group.label)
        first, *more = folded(label, console.width - 2) if console.is_terminal else [label]
        lines += [first, *(_line("  ").append_text(part) for part in more)]
        _print_between(lines, group.intro, console)
        lines += [_line(line(row), "dim" if row.dim else "plain") for row in group.rows]
        _print_between(lines, group.remarks, console)
    _print_lines(lines, console)


def _print_between(
    lines: list[RichText], paragraphs: tuple[el.Paragraph, ...], console: Console
) -> None:
    """Prints paragraphs, if there are any, after the lines before them, which are then printed."""
    if paragraphs:
        _print_lines(lines, console)
        lines.clear()
        _print(paragraphs, console)


def _print_lines(lines: Sequence[RichText], console: Console) -> None:
    """Prints whole lines; tens of thousands one by one would take seconds."""
    from rich.text import Text as RichText

    for start in range(0, len(lines), _AT_ONCE):
        text = RichText("\n").join(lines[start : start + _AT_ONCE])
        console.print(text, highlight=False, soft_wrap=True)


def _plain_cells(row: el.Row) -> list[str]:
    return [el.plain(cell.text if isinstance(cell, el.Cell) else cell) for cell in row.cells]


def _cell(cell: el.Text | el.Cell) -> RichText:
    if not isinstance(cell, el.Cell):
        return _line(cell)
    text = _line(cell.text)
    for flag in cell.flags:
        below = _line((el.Span("!", "unsure"), f" {flag}"))
        text = text.append("\n").append_text(below) if text else below
    return text


def _line(text: el.Text, role: el.Role = "plain") -> RichText:
    """Returns a line in which no character of the text is markup, or moves the cursor."""
    from rich.text import Text as RichText

    line = RichText(style=_STYLES[role])
    for piece in el.spans(text):
        if isinstance(piece, str):
            line.append(presentable(piece))
        else:
            bold = "bold " if piece.strong else ""
            line.append(
                presentable(piece.text), style=f"{bold}{_STYLES[piece.role]}".strip() or None
            )
    return line
