"""Elements of a document, free of how a terminal, Markdown or HTML shows them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Role: TypeAlias = Literal["plain", "dim", "good", "bad", "unsure"]
"""Meaning of a text, which each renderer shows by a colour of its own."""

Page: TypeAlias = Literal["markdown", "html"]

Tone: TypeAlias = Role | Literal["bar", "c1", "c2", "c3", "c4", "c5", "c6", "c7"]
"""Colour of a mark in a plot: a meaning, that of plain bars, or one of a series of colours."""

Shape: TypeAlias = Literal["dots", "ticks", "band", "line"]
"""Marks of a plot: round dots, upright strokes, an area from one place to another, a line."""

Fold: TypeAlias = Literal["whole", "wrapped", "hanging"]
"""Line breaks on a terminal: none, as the console wraps, or each line below the first word.

A hanging paragraph is whole where there is no terminal, so that a log can be searched. What is to
be copied, such as code or a command, is whole everywhere.
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
        href: Address that pages link it to, such as a file beside the page; empty for no link.
    """

    text: str
    role: Role = "plain"
    code: bool = False
    strong: bool = False
    href: str = ""


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
    fold: Fold = "hanging"


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
        apart: Whether a cell for which a terminal has no room beside those after it stands above
            them, on lines of its own; one column of a table at most.
        spare: Whether a terminal without room for all leaves it out, where a column is `apart`.
    """

    heading: str
    kind: Kind = "text"
    whole: bool = False
    width: int | None = None
    apart: bool = False
    spare: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with remarks below its text, which Markdown leaves out.

    Attributes:
        text: Its text.
        flags: What speaks against it, a line each.
        notes: What else there is to say, a line each, which only HTML has; what stands in
            backticks is set as code.
    """

    text: Text
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """Marks of one kind in a plot.

    Attributes:
        shape: What they look like.
        at: Where they are, in percent of the width from the left and of the height from the top; of
            a band two corners.
        tone: Their colour.
        title: What is said of them alone, to whoever points at them; empty for nothing.
    """

    shape: Shape
    at: tuple[tuple[float, float], ...]
    tone: Tone = "bar"
    title: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """A small plot that HTML draws as wide as there is room, without text of its own.

    Attributes:
        title: What it shows, with its values, for those who point at it or cannot see it.
        marks: Its marks, the last on top.
        height: Its height in lines of text.
    """

    title: str
    marks: tuple[Mark, ...]
    height: float = 1.2


Axis: TypeAlias = tuple[tuple[float, str], ...]
"""Ticks of plots that share one axis: place in percent of their width, and label."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Attributes:
        cells: One cell per column.
        dim: Whether it matters less than others.
        plot: A plot after its cells, which only HTML draws; None without.
        key: Key by which a `Filter` of the page hides it; empty for a row that always stays.
    """

    cells: tuple[Text | Cell, ...]
    dim: bool = False
    plot: Plot | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of a table that belong together.

    Attributes:
        label: Stands above its rows; Markdown has `keys` instead.
        rows: The rows.
        keys: Its cells in the columns that Markdown has for groups.
        intro: Paragraphs before its rows, not in Markdown.
        remarks: Paragraphs after its rows, not in Markdown.
        axis: Ticks of the plots of its rows.
        key: As that of a row, for all of the group.
    """

    label: Text
    rows: tuple[Row, ...]
    keys: tuple[Text, ...] = ()
    intro: tuple[Paragraph, ...] = ()
    remarks: tuple[Paragraph, ...] = ()
    axis: Axis = ()
    key: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, or groups of rows whose columns line up.

    Attributes:
        columns: Its columns.
        rows: Its rows; none when it has groups.
        groups: Its groups.
        keys: Headings of the columns that Markdown has for groups.
        plots: Heading of the plots of its rows; empty when they have none.
        sorts: Whether readers of HTML can sort its rows, each group by itself.
        empty: What HTML says when there is no row.
        indented: Whether a terminal indents it.
        ruled: Whether a terminal draws a line below its headings.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    groups: tuple[Group, ...] = ()
    keys: tuple[str, ...] = ()
    plots: str = ""
    sorts: bool = False
    empty: str = ""
    indented: bool = False
    ruled: bool = True

    def only(self, kept: Container[str]) -> Table:
        """Returns the table with those columns alone that have one of some headings."""
        places = [at for at, column in enumerate(self.columns) if column.heading in kept]

        def picked(rows: Iterable[Row]) -> tuple[Row, ...]:
            return tuple(replace(row, cells=tuple(row.cells[at] for at in places)) for row in rows)

        return replace(
            self,
            columns=tuple(self.columns[at] for at in places),
            rows=picked(self.rows),
            groups=tuple(replace(group, rows=picked(group.rows)) for group in self.groups),
        )


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
class Legend:
    """Colours of the plots below it, and what each means; only HTML has plots."""

    tones: tuple[tuple[Tone, str], ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """Search and choices that show some rows of the page's tables; only HTML has them.

    Attributes:
        what: What the rows stand for, such as `points`.
        names: What is searched, by the key of the rows.
        choices: Values that rows can be chosen by, under a name, each by key.
    """

    what: str
    names: Mapping[str, str]
    choices: Mapping[str, Mapping[str, str]]


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
    | Plot
    | Legend
    | Filter
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
