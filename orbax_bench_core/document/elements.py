"""Elements of a document, free of how a terminal, Markdown or HTML shows them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Role: TypeAlias = Literal["plain", "dim", "good", "bad", "unsure"]
"""Meaning of a text, which each renderer shows by a colour of its own."""

_ROLES: Final[Mapping[str, Role]] = {
    "REGRESSION": "bad",
    "LEAK": "bad",
    "FAILED": "bad",
    "INCONCLUSIVE": "unsure",
    "PASS": "good",
}
"""How each word of a conclusion is shown."""

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
    """A piece of a line."""

    text: str  # the characters, none of which is markup
    role: Role = "plain"  # its meaning
    code: bool = False  # whether it is set as code, such as the name of a point
    strong: bool = False  # whether it stands out
    # address that pages link it to, such as a file beside the page; empty for no link
    href: str = ""

    @classmethod
    def judged(cls, word: str, text: str = "", *, strong: bool = False) -> Span:
        """Returns the word of a conclusion, or a text about it, as such a word is shown."""
        return cls(text or word, _ROLES[word], strong=strong)


Text: TypeAlias = str | Span | tuple[str | Span, ...]
"""A line. In a `str`, pages set what stands in backticks as code."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 or 2; a bold line on a terminal."""

    text: Text
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences, or one line of a terminal."""

    text: Text  # the sentences
    role: Role = "plain"  # their meaning
    mark: Text = ""  # stands before them, such as `note:`
    indent: int = 0  # columns before it on a terminal
    fold: Fold = "hanging"  # how a terminal breaks it


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
    """A column of a table."""

    heading: str
    kind: Kind = "text"  # what it holds
    whole: bool = False  # whether a terminal never breaks it
    width: int | None = None  # its width on a terminal; None for that of its content
    # whether a cell for which a terminal has no room beside those after it stands above them, on
    # lines of its own; one column of a table at most
    apart: bool = False
    # whether a terminal without room for all leaves it out, where a column is `apart`
    spare: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with remarks below its text, which Markdown leaves out."""

    text: Text
    flags: tuple[str, ...] = ()  # what speaks against it, a line each
    # what else there is to say, a line each, which only HTML has; what stands in backticks is set
    # as code
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """Marks of one kind in a plot."""

    shape: Shape  # what they look like
    # where they are, in percent of the width from the left and of the height from the top; of a
    # band two corners
    at: tuple[tuple[float, float], ...]
    tone: Tone = "bar"  # their colour
    title: str = ""  # what is said of them alone, when the pointer is on them; empty for nothing


@dataclass(frozen=True, slots=True)
class Plot:
    """A small plot that HTML draws as wide as there is room, without text of its own."""

    title: str  # what it shows, with its values, for those who point at it or cannot see it
    marks: tuple[Mark, ...]  # its marks, the last on top
    height: float = 1.2  # its height in lines of text


Axis: TypeAlias = tuple[tuple[float, str], ...]
"""Ticks of plots that share one axis: place in percent of their width, and label."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table."""

    cells: tuple[Text | Cell, ...]  # one cell per column
    dim: bool = False  # whether it matters less than others
    plot: Plot | None = None  # a plot after its cells, which only HTML draws; None without
    key: str = ""  # key by which a `Filter` of the page hides it; empty for a row that always stays


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of a table that belong together."""

    label: Text  # stands above its rows; Markdown has `keys` instead
    rows: tuple[Row, ...]
    keys: tuple[Text, ...] = ()  # its cells in the columns that Markdown has for groups
    intro: tuple[Paragraph, ...] = ()  # paragraphs before its rows, not in Markdown
    remarks: tuple[Paragraph, ...] = ()  # paragraphs after its rows, not in Markdown
    axis: Axis = ()  # ticks of the plots of its rows
    key: str = ""  # as that of a row, for all of the group


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, or groups of rows whose columns line up."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()  # its rows; none when it has groups
    groups: tuple[Group, ...] = ()
    keys: tuple[str, ...] = ()  # headings of the columns that Markdown has for groups
    plots: str = ""  # heading of the plots of its rows; empty when they have none
    sorts: bool = False  # whether readers of HTML can sort its rows, each group by itself
    empty: str = ""  # what HTML says when there is no row
    indented: bool = False  # whether a terminal indents it
    ruled: bool = True  # whether a terminal draws a line below its headings

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
    """A drawing; no terminal shows it."""

    title: str  # what it shows, for those who cannot see it
    draw: Callable[[], Drawing]  # makes the drawing; called inside `figures.style`
    # name of the PNG file that Markdown links to; without one Markdown has no figure
    file: str = ""


@dataclass(frozen=True, slots=True)
class Legend:
    """Colours of the plots below it, and what each means; only HTML has plots."""

    tones: tuple[tuple[Tone, str], ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """Search and choices that show some rows of the page's tables; only HTML has them."""

    what: str  # what the rows stand for, such as `points`
    names: Mapping[str, str]  # what is searched, by the key of the rows
    # values that rows can be chosen by, under a name, each by key
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
    """Elements under a heading, left out when nothing of them is shown."""

    heading: Text
    elements: tuple[Element, ...]
    # elements below the heading that are no reason to show the section
    lead: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True)
class Only:
    """Elements of one kind of page; no terminal shows them."""

    page: Page
    elements: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class ByWidth:
    """Elements that depend on the width of the console; pages show the wide ones."""

    least: int  # columns from which on there is room for the wide ones
    wide: tuple[Element, ...]  # elements for a wide console
    narrow: tuple[Element, ...]  # elements for a narrow one
    terminal: bool = False  # whether only a terminal is wide, and never a log


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
    """Document for people, on a page or on a terminal."""

    title: str  # title of the page
    elements: tuple[Element, ...]  # the elements of the page
    # what a terminal shows instead, where the last line is read first; None for the same
    brief: tuple[Element, ...] | None = None
    escape: bool = True  # whether Markdown escapes what a sentence or a name has of its markup


def spans(text: Text) -> tuple[str | Span, ...]:
    """Returns the pieces of a line."""
    return text if isinstance(text, tuple) else (text,)


def plain(text: Text) -> str:
    """Returns the characters of a line."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in spans(text))
