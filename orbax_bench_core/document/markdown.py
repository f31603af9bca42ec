"""Markdown renderer: documents as text, and the files of the figures that it links to."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, assert_never
from urllib.parse import quote

from orbax_bench_core.document import figures as drawings
from orbax_bench_core.document.elements import (
    ByWidth,
    Callout,
    Cell,
    Code,
    Column,
    Details,
    Document,
    Element,
    Facts,
    Figure,
    Filter,
    Heading,
    Items,
    Legend,
    Only,
    Paragraph,
    Plot,
    Row,
    Section,
    Span,
    Table,
    Text,
    plain,
    spans,
)
from orbax_bench_core.document.numbers import table_cell
from orbax_bench_core.errors import presentable
from orbax_bench_core.files import AnyPath

if TYPE_CHECKING:
    import os


_LONGEST_TITLE: Final = 120


def to_markdown(document: Document, *, figures: str | None = None) -> str:
    """Returns a document as Markdown."""
    folder = None if figures is None else quote(figures.rstrip("/"), safe="/:.")
    blocks = _Markdown(escape=document.escape, folder=folder).blocks(document.elements)
    return "\n\n".join(blocks) + "\n"


def write_figures(document: Document, folder: str | os.PathLike[str]) -> list[AnyPath]:
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


def _figures(elements: Iterable[Element]) -> Iterator[Figure]:
    for element in elements:
        if isinstance(element, Figure) and element.file:
            yield element
        elif isinstance(element, Details | Section) or (
            isinstance(element, Only) and element.page == "markdown"
        ):
            yield from _figures(element.elements)


class _Markdown:
    def __init__(self, *, escape: bool, folder: str | None) -> None:
        self._escape = escape
        self._folder = folder

    def blocks(self, elements: Iterable[Element]) -> list[str]:
        """Returns elements as blocks, between which a line is left empty."""
        return [block for element in elements for block in self._element(element) if block]

    def _element(self, element: Element) -> list[str]:
        match element:
            case Heading():
                return [f"{'#' * element.level} {self._line(element.text)}"]
            case Paragraph():
                mark = self._line(element.mark)
                return [f"{mark} {self._line(element.text)}".strip()]
            case Items():
                return ["\n".join(f"- {self._line(item)}" for item in element.items)]
            case Code():
                return [_fenced(element.text)]
            case Facts():
                return ["\n".join(f"- {name}: {self._line(said)}" for name, said in element.pairs)]
            case Table():
                return [self._table(element)]
            case Figure():
                if self._folder is None or not element.file:
                    return []
                title = self._prose(drawings.shorten(element.title, _LONGEST_TITLE))
                return [f"![{title}]({self._folder}/{quote(element.file)})"]
            case Plot() | Legend() | Filter():
                return []
            case Callout():
                return [f"{element.word.text}: {self._line(element.text)}"]
            case Details():
                shown = [self._line(element.summary), *self.blocks(element.elements)]
                if not any(isinstance(inner, Code) for inner in element.elements):
                    return shown
                # What a program printed is long; whoever shows Markdown folds it.
                # An empty line would end the tag, and what follows would be Markdown.
                summary = html.escape(" ".join(presentable(plain(element.summary)).split()))
                opened = f"<details><summary>{summary}</summary>"
                return [opened, *shown[1:], "</details>"]
            case Section():
                shown = self.blocks(element.elements)
                heading = f"## {self._line(element.heading)}"
                return [heading, *self.blocks(element.lead), *shown] if shown else []
            case Only():
                return self.blocks(element.elements) if element.page == "markdown" else []
            case ByWidth():
                return self.blocks(element.wide)
            case _:
                assert_never(element)

    def _table(self, table: Table) -> str:
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

    def _cells(self, columns: Iterable[Column], row: Row) -> list[str]:
        return [
            table_cell(_bare(cell)) if column.kind in ("number", "fixed") else self._cell(cell)
            for column, cell in zip(columns, row.cells, strict=True)
        ]

    def _cell(self, cell: Text | Cell) -> str:
        text = cell.text if isinstance(cell, Cell) else cell
        return "".join(
            # A bar would end the cell; a code span has none left.
            self._piece(piece) if _is_code(piece) else self._piece(piece).replace("|", "\\|")
            for piece in spans(text)
        ).strip()

    def _line(self, text: Text) -> str:
        return "".join(map(self._piece, spans(text)))

    def _piece(self, piece: str | Span) -> str:
        said = _code(plain(piece)) if _is_code(piece) else self._prose(plain(piece))
        if not isinstance(piece, Span) or not piece.href:
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


def _is_code(piece: str | Span) -> bool:
    return isinstance(piece, Span) and piece.code


def _bare(cell: Text | Cell) -> str:
    return plain(cell.text if isinstance(cell, Cell) else cell)


def _code(text: str) -> str:
    """Returns a name as a code span, in which nothing is markup, for a table or elsewhere."""
    line = " ".join(presentable(text).split()).replace("|", "\\|")
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"
