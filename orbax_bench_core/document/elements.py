"""Elements of a document, free of how a terminal, Markdown or HTML shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Role: TypeAlias = Literal["plain", "dim", "good", "bad", "unsure"]
"""Meaning of a text, which each renderer shows by a colour of its own."""

Page: TypeAlias = Literal["markdown", "html"]

Fold: TypeAlias = Literal["whole", "wrapped", "hanging"]
"""Line breaks on a terminal: none, as the console wraps, or each line below the first word.

A hanging paragraph is whole where there is no terminal, so that a log can be searched.
"""

Kind: TypeAlias = Literal["text", "number", "fixed", "prose"]
"""Content of a column: names, numbers, fixed words of the program, or sentences.

Numbers and fixed words hold nothing of the user's; they are never broken, and Markdown does not
escape them.
"""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line.

    Attributes:
        text: The characters, none of which is markup.
        role: Its meaning.
        code: Whether it is set as code, such as the name of a point.
        strong: Whether it stands out.
    """

    text: str
    role: Role = "plain"
    code: bool = False
    strong: bool = False


Text: TypeAlias = str | Span | tuple[str | Span, ...]
"""A line. In a `str`, pages set what stands in backticks as code."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 or 2; a bold line on a terminal."""

    text: Text
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences, or one line of a terminal.

    Attributes:
        text: The sentences.
        role: Their meaning.
        mark: Stands before them, such as `note:`.
        indent: Columns before it on a terminal.
        fold: How a terminal breaks it.
    """

    text: Text
    role: Role = "plain"
    mark: Text = ""
    indent: int = 0
    fold: Fold = "whole"


@dataclass(frozen=True, slots=True)
class Items:
    """A list with bullets."""

    items: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Lines as a program printed them, such as a traceback; nothing in them is markup."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and what each of them is."""

    pairs: tuple[tuple[str, Text], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        heading: Its heading.
        kind: What it holds.
        whole: Whether a terminal never breaks it.
        width: Its width on a terminal; None for that of its content.
    """

    heading: str
    kind: Kind = "text"
    whole: bool = False
    width: int | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with remarks below its text, which Markdown leaves out."""

    text: Text
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Attributes:
        cells: One cell per column.
        dim: Whether it matters less than others.
        bar: Start, mark and end of a bar that HTML draws, in percent of its column; None without.
    """

    cells: tuple[Text | Cell, ...]
    dim: bool = False
    bar: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of a table that belong together.

    Attributes:
        label: Stands above its rows; Markdown has `keys` instead.
        rows: The rows.
        keys: Its cells in the columns that Markdown has for groups.
        intro: Paragraphs before its rows, not in Markdown.
        remarks: Paragraphs after its rows, not in Markdown.
    """

    label: Text
    rows: tuple[Row, ...]
    keys: tuple[Text, ...] = ()
    intro: tuple[Paragraph, ...] = ()
    remarks: tuple[Paragraph, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, or groups of rows whose columns line up.

    Attributes:
        columns: Its columns.
        rows: Its rows; none when it has groups.
        groups: Its groups.
        keys: Headings of the columns that Markdown has for groups.
        bars: Heading of the bars of its rows; empty when they have none.
        empty: What HTML says when there is no row.
        indented: Whether a terminal indents it.
        ruled: Whether a terminal draws a line below its headings.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    groups: tuple[Group, ...] = ()
    keys: tuple[str, ...] = ()
    bars: str = ""
    empty: str = ""
    indented: bool = False
    ruled: bool = True


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing; no terminal shows it.

    Attributes:
        title: What it shows, for those who cannot see it.
        draw: Makes the drawing; called inside `figures.style`.
        file: Name of the PNG file that Markdown links to; without one Markdown has no figure.
    """

    title: str
    draw: Callable[[], Drawing]
    file: str = ""


@dataclass(frozen=True, slots=True)
class Callout:
    """Conclusion of a page: a word, and a sentence below it."""

    word: Span
    text: Text


@dataclass(frozen=True, slots=True)
class Details:
    """Elements that HTML folds under a line; Markdown only where `Code` is among them."""

    summary: Text
    elements: tuple[Element, ...]
    open: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """Elements under a heading, left out when nothing of them is shown.

    Attributes:
        heading: The heading.
        elements: The elements.
        lead: Elements below the heading that are no reason to show the section.
    """

    heading: Text
    elements: tuple[Element, ...]
    lead: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True)
class Only:
    """Elements of one kind of page; no terminal shows them."""

    page: Page
    elements: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class ByWidth:
    """Elements that depend on the width of the console; pages show the wide ones.

    Attributes:
        least: Columns from which on there is room for the wide ones.
        wide: Elements for a wide console.
        narrow: Elements for a narrow one.
        terminal: Whether only a terminal is wide, and never a log.
    """

    least: int
    wide: tuple[Element, ...]
    narrow: tuple[Element, ...]
    terminal: bool = False


Element: TypeAlias = (
    Heading
    | Paragraph
    | Items
    | Code
    | Facts
    | Table
    | Figure
    | Callout
    | Details
    | Section
    | Only
    | ByWidth
)

BLANK = Paragraph("")
"""An empty line on a terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Document for people, on a page or on a terminal.

    Attributes:
        title: Title of the page.
        elements: The elements of the page.
        brief: What a terminal shows instead, where the last line is read first; None for the same.
        escape: Whether Markdown escapes what a sentence or a name has of its markup.
    """

    title: str
    elements: tuple[Element, ...]
    brief: tuple[Element, ...] | None = None
    escape: bool = True


def spans(text: Text) -> tuple[str | Span, ...]:
    """Returns the pieces of a line."""
    return text if isinstance(text, tuple) else (text,)


def plain(text: Text) -> str:
    """Returns the characters of a line."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in spans(text))
