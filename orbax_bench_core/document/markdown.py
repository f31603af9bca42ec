"""Markdown renderer: documents as text, and the files of the figures that it links to."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, assert_never
from urllib.parse import quote

from orbax_bench_core.document import elements as el
from orbax_bench_core.document import figures as drawings
from orbax_bench_core.errors import presentable, without_orders
from orbax_bench_core.files import AnyPath
from orbax_bench_core.pages import table_cell

if TYPE_CHECKING:
    import os


_LONGEST_TITLE: Final = 120


def to_markdown(document: el.Document, *, figures: str | None = None) -> str:
    """Returns a document as Markdown."""
    folder = None if figures is None else quote(figures.rstrip("/"), safe="/:.")
    blocks = _Markdown(escape=document.escape, folder=folder).blocks(document.elements)
    return without_orders("\n\n".join(blocks)) + "\n"


def write_figures(document: el.Document, folder: str | os.PathLike[str]) -> list[AnyPath]:
    """Writes the figures that the Markdown of a document links to, as PNG files.

    The folder, local or gs://, is created.
    """
    from etils import epath

    from orbax_bench_core.files import write_atomically

    written = []
    for figure in _figures(document.elements):
        path = epath.Path(folder) / figure.file
        with drawings.style():
            write_atomically(path, drawings.png(figure.draw()))
        written.append(path)
    return written


def _figures(elements: Iterable[el.Element]) -> Iterator[el.Figure]:
    for element in elements:
        if isinstance(element, el.Figure) and element.file:
            yield element
        elif isinstance(element, el.Details | el.Section) or (
            isinstance(element, el.Only) and element.page == "markdown"
        ):
            yield from _figures(element.elements)


class _Markdown:
    def __init__(self, *, escape: bool, folder: str | None) -> None:
        self._escape = escape
        self._folder = folder

    def blocks(self, elements: Iterable[el.Element]) -> list[str]:
        """Returns elements as blocks, between which a line is left empty."""
        return [block for element in elements for block in self._element(element) if block]

    def _element(self, element: el.Element) -> list[str]:
        match element:
            case el.Heading():
                return [f"{'#' * element.level} {self._line(element.text)}"]
            case el.Paragraph():
                mark = self._line(element.mark)
                return [f"{mark} {self._line(element.text)}".strip()]
            case el.Items():
                return ["\n".join(f"- {self._line(item)}" for item in element.items)]
            case el.Code():
                return [_fenced(element.text)]
            case el.Facts():
                return ["\n".join(f"- {name}: {self._line(said)}" for name, said in element.pairs)]
            case el.Table():
                return [self._table(element)]
            case el.Figure():
                if self._folder is None or not element.file:
                    return []
                title = self._prose(drawings.shorten(element.title, _LONGEST_TITLE))
                return [f"![{title}]({self._folder}/{quote(element.file)})"]
            case el.Plot() | el.Legend() | el.Filter():
                return []
            case el.Callout():
                return [f"{element.word.text}: {self._line(element.text)}"]
            case el.Details():
                shown = [self._line(element.summary), *self.blocks(element.elements)]
                if not any(isinstance(inner, el.Code) for inner in element.elements):
                    return shown
                # What a program printed is long; the viewer of Markdown folds it.
                # An empty line would end the tag, and what follows would be Markdown.
                summary = html.escape(" ".join(presentable(el.plain(element.summary)).split()))
                opened = f"<details><summary>{summary}</summary>"
                return [opened, *shown[1:], "</details>"]
            case el.Section():
                shown = self.blocks(element.elements)
                heading = f"## {self._line(element.heading)}"
                return [heading, *self.blocks(element.lead), *shown] if shown else []
            case el.Only():
                return self.blocks(element.elements) if element.page == "markdown" else []
            case el.ByWidth():
                return self.blocks(element.wide)
            case _:
                assert_never(element)

    def _table(self, table: el.Table) -> str:
        rule = ["---"] * len(table.keys)
        rule += ["---:" if column.kind == "number" else "---" for column in table.columns]
        lines = [
            _row([*table.keys, *(column.heading for column in table.columns)]),
            f"|{'|'.join(rule)}|",
        ]
        lines += [_row(self._cells(table.columns, row)) for row in table.rows]
        for group in table.groups:
            keys = [self._cell(key) for key in group.keys]
            for row in group.rows:
                lines.append(_row([*keys, *self._cells(table.columns, row)]))
                keys = [""] * len(keys)
        return "\n".join(lines)

    def _cells(self, columns: Iterable[el.Column], row: el.Row) -> list[str]:
        return [
            table_cell(_bare(cell)) if column.kind in ("number", "fixed") else self._cell(cell)
            for column, cell in zip(columns, row.cells, strict=True)
        ]

    def _cell(self, cell: el.Text | el.Cell) -> str:
        text = cell.text if isinstance(cell, el.Cell) else cell
        return "".join(
            # A bar would end the cell; a code span has none left.
            self._piece(piece) if _is_code(piece) else self._piece(piece).replace("|", "\\|")
            for piece in el.spans(text)
        ).strip()

    def _line(self, text: el.Text) -> str:
        return "".join(map(self._piece, el.spans(text)))

    def _piece(self, piece: str | el.Span) -> str:
        said = _code(el.plain(piece)) if _is_code(piece) else self._prose(el.plain(piece))
        if not isinstance(piece, el.Span) or not piece.href:
            return said
        return f"[{said}](<{quote(piece.href, safe='/:.?=&#%')}>)"

    def _prose(self, text: str) -> str:
        """Returns text on one line, in which only backticks are markup."""
        line = re.sub(r"\s+", " ", presentable(text))
        if not self._escape:
            # Nothing becomes a tag, a link or a picture of somewhere else all the same.
            return line.replace("<", "&lt;").replace("](", "]\\(")
        return re.sub(r"([\\*\[\]])", r"\\\1", line.replace("&", "&amp;").replace("<", "&lt;"))


def _fenced(text: str) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{presentable(text).rstrip()}\n{fence}"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _is_code(piece: str | el.Span) -> bool:
    return isinstance(piece, el.Span) and piece.code


def _bare(cell: el.Text | el.Cell) -> str:
    return el.plain(cell.text if isinstance(cell, el.Cell) else cell)


def _code(text: str) -> str:
    """Returns a name as a code span, in which nothing is markup, for a table or elsewhere."""
    line = " ".join(presentable(text).split()).replace("|", "\\|")
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"
