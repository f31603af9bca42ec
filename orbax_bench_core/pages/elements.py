"""Elements of a document, free of how a terminal, Markdown or HTML shows them.

Every text is plain, also that of others, but for names in backticks, which are set as code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from orbax_bench_core.pages.numbers import Scale, Ticks

Role: TypeAlias = Literal["plain", "dim", "good", "bad", "unsure"]
"""Meaning of a text or of a mark, which each renderer shows by a colour of its own."""

Tone: TypeAlias = Role | Literal["c1", "c2", "c3", "c4", "c5", "c6", "c7"]
"""Colour of a mark: a meaning, or one of a series of colours that can be told apart."""

Kind: TypeAlias = Literal["text", "number", "code", "prose", "picture"]
"""Content of a column: short texts, numbers, names of others, sentences, or small drawings."""

Shape: TypeAlias = Literal["dots", "line", "band", "bar", "whisker", "tick"]
"""Looks of a mark: dots, ticks and a line have a place each; an area, a bar and a whisker two."""

SIGNS: Final[dict[Role, str]] = {"good": "✓", "bad": "✗", "unsure": "?", "plain": "", "dim": ""}
"""Sign before the word of a conclusion, for those who do not see its colour."""

_LOOKS_ALIKE: Final = "\u02cb"
"""In place of a backtick in a name, which would end it."""
_KINDS: Final[dict[str, Kind]] = {"#": "number", "`": "code", "~": "prose"}
"""Kinds of columns, by the last character of what `columns` is given."""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, with a list of items below it."""

    text: str = ""
    role: Role = "plain"
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Code:
    """Lines to be copied, or as a program printed them, below a caption."""

    text: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """The heading of a column, and the kind of its cells."""

    heading: str
    kind: Kind = "text"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with a role, with a link to a file next to the page, or with a small drawing.

    A page has the drawing in place of the text, which says the same elsewhere. Its axes have no
    room for ticks.
    """

    text: str
    role: Role = "plain"
    href: str = ""
    chart: Chart | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Cells, one per column. Rows of one group follow each other below its name."""

    cells: tuple[str | Cell, ...]
    group: str = ""
    dim: bool = False  # whether it matters less than others


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below the headings of their columns, the most important first.

    Of the columns whose headings are in `filters` a reader of the page chooses one value each.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    filters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuses a row that would lose a cell, or shift its cells below other headings."""
        if any(len(row.cells) != len(self.columns) for row in self.rows):
            raise ValueError(f"a row needs {len(self.columns)} cells, one per column")


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a chart: values by their place on it, and its ticks."""

    label: str
    scale: Scale
    ticks: Ticks


@dataclass(frozen=True, slots=True)
class Mark:
    """Marks of one kind, in the units of both axes.

    Bands, bars and whiskers lie between two opposite corners each: of four places there are two.
    """

    shape: Shape
    at: tuple[tuple[float, float], ...]
    tone: Tone = "plain"
    name: str = ""  # its entry in the legend; empty for none
    hollow: bool = False  # of dots
    dashed: bool = False  # of lines


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing of data, which only pages draw; `said` is told wherever nobody sees it."""

    title: str
    said: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]  # the last on top
    height: int = 220  # CSS pixels between the ends of the vertical axis


@dataclass(frozen=True, slots=True)
class Details:
    """Elements that a page folds under a line; without any, nothing of it is shown."""

    summary: str
    elements: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """Elements under a heading; without any, nothing of it is shown."""

    heading: str
    elements: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Callout:
    """The answer: a word, if there is one for it, and one sentence."""

    word: str
    text: str
    role: Role = "plain"

    @property
    def said(self) -> str:
        """The answer in a line, the same in every place."""
        return f"{SIGNS[self.role]} {self.word}: {self.text}".lstrip() if self.word else self.text


Element: TypeAlias = Text | Code | Table | Chart | Details | Section


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An answer: its headline, the figures that it rests on, the next step, and all the rest."""

    about: str  # what the answer is about: the suite, when, how much
    headline: Callout
    summary: tuple[Element, ...]  # with the headline all that a terminal shows by default
    following: Code | None = None  # the command to run next, and why; None for nothing to do
    details: tuple[Element, ...] = ()

    @property
    def all(self) -> tuple[Element, ...]:
        """What stands below the headline of a page: what to do first, as screens are small."""
        now = () if self.following is None else (self.following,)
        return (*now, *self.summary, *self.details)


def code(name: str) -> str:
    """Returns a name of others as part of a text, set as code."""
    return f"`{name.replace('`', _LOOKS_ALIKE)}`"


def columns(*headings: str) -> tuple[Column, ...]:
    """Returns columns by their headings, whose end names the kind.

    `#` is that of numbers, a backtick that of names of others, `~` that of sentences.
    """
    return tuple(
        Column(heading[:-1], _KINDS[heading[-1]]) if heading[-1] in _KINDS else Column(heading)
        for heading in headings
    )


def without_pictures(table: Table) -> Table:
    """Returns a table without its columns of drawings, as a terminal shows it."""
    kept = [place for place, column in enumerate(table.columns) if column.kind != "picture"]
    if len(kept) == len(table.columns):
        return table
    rows = (replace(row, cells=tuple(row.cells[place] for place in kept)) for row in table.rows)
    return Table(tuple(table.columns[place] for place in kept), tuple(rows))


def as_cell(cell: str | Cell) -> Cell:
    """Returns a cell, made of a text where it is only that."""
    return cell if isinstance(cell, Cell) else Cell(cell)


def axis(
    label: str, low: float, high: float, write: Callable[[float], str], *, log: bool = False
) -> Axis:
    """Returns an axis with a few round ticks.

    Args:
        label: What the values are, with their unit if the ticks lack it.
        low: Value at the left or lower end; above 0 on a log scale.
        high: Value at the other end; one that is not above `low` is `low` + 1.
        write: Writes a tick, with its unit.
        log: Whether equal distances are equal ratios.
    """
    scale = Scale(low, high if high > low else low + 1, log)
    return Axis(label, scale, scale.axis(write))


def named_axis(names: Sequence[str], label: str = "") -> Axis:
    """Returns an axis on which 0, 1, 2... have names; an empty one is a place without a tick."""
    scale = Scale(-0.5, len(names) - 0.5, log=False)
    ticks = ((scale.place(at), name) for at, name in enumerate(names) if name)
    return Axis(label, scale, tuple(ticks))


def rows_height(names: Sequence[str]) -> int:
    """Returns the height of a chart whose rows have names, which a phone wraps."""
    lines = max((-(-len(name) // 17) for name in names), default=1)
    return 20 + max(30, 17 * lines) * len(names)


def shown(elements: Iterable[Element]) -> list[Element]:
    """Returns the elements that have any content, so that views need not ask each for it."""
    return [element for element in elements if _has_content(element)]


def _has_content(element: Element) -> bool:
    match element:
        case Text(text, _, items):
            return bool(text or items)
        case Table(_, rows):
            return bool(rows)
        case Details(_, inner) | Section(_, inner):
            return bool(shown(inner))
        case _:
            return True
