"""Flowcharts of pages as drawings, so that the site needs no script of another site.

Pages have them as Mermaid, which code hosts draw by themselves. Of its language is known what our
pages use: nodes, arrows with or without words, and boxes around nodes.
"""

from __future__ import annotations

import dataclasses
import html
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final

_BLOCK: Final = re.compile(r"^```mermaid\nflowchart LR\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_BOX: Final = re.compile(r'subgraph ([\w.-]+?)\["(.*)"\]')
_ARROW: Final = re.compile(r"(.+?) --(?: (.+?) --)?> (.+)")
_NODE: Final = re.compile(r"([\w.-]+)(?:\[(.*)\])?")

_CHARACTER: Final = 7.2
"""Width of a character of 13 px, at most."""

_LINE: Final = 34.0
"""Height of a node."""

_GAP: Final = 16.0
_TITLE: Final = 22.0


@dataclasses.dataclass
class Chart:
    """A box of nodes, or the whole chart.

    Attributes:
        title: What stands above it.
        nodes: What is in it by its name: the words of a node, or a box.
        arrows: From, words, and to.
    """

    title: str = ""
    nodes: dict[str, str | Chart] = dataclasses.field(default_factory=dict)
    arrows: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class _Drawn:
    """Elements of a drawing, and how much room they take."""

    width: float
    height: float
    elements: tuple[str, ...]


def drawn(page: str) -> str:
    """Returns a page with its flowcharts as SVG.

    Raises:
        ValueError: A chart has a line that is not known here.
    """
    return _BLOCK.sub(lambda block: _svg(parsed(block.group(1))), page)


def parsed(text: str) -> Chart:
    """Returns the chart that lines of Mermaid describe.

    Raises:
        ValueError: A line is not known here.
    """
    stack = [Chart()]
    for line in filter(None, map(str.strip, text.splitlines())):
        here = stack[-1]
        if box := _BOX.fullmatch(line):
            inner = Chart(box.group(2))
            here.nodes[box.group(1)] = inner
            stack.append(inner)
        elif line == "end" and len(stack) > 1:
            stack.pop()
        elif arrow := _ARROW.fullmatch(line):
            first, words, last = arrow.groups()
            here.arrows.append((_node(here, first), words or "", _node(here, last)))
        else:
            _node(here, line)
    return stack[0]


def _node(chart: Chart, text: str) -> str:
    """Adds a node to a chart, unless it is there; returns its name."""
    found = _NODE.fullmatch(text)
    if found is None:
        raise ValueError(f"a flowchart has a line that is not known: {text}")
    name, words = found.groups()
    if words or name not in chart.nodes:
        chart.nodes[name] = words or name
    return name


def _svg(chart: Chart) -> str:
    made = _laid_out(chart)
    said = "; ".join(
        f"{_words(box, first)} to {_words(box, last)}"
        for box in _boxes(chart)
        for first, _, last in box.arrows
    )
    head = (
        f'<svg role="img" aria-label="A flowchart: {html.escape(said)}" '
        f'viewBox="0 0 {made.width:.0f} {made.height:.0f}" '
        f'style="width: {made.width:.0f}px; max-width: 100%; min-width: {made.width * 0.75:.0f}px" '
        'font-size="13" font-family="inherit">'
    )
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="currentColor"/>'
        "</marker></defs>"
    )
    return "\n".join(
        ['<div style="overflow-x: auto">', head, marker, *made.elements, "</svg>", "</div>"]
    )


def _boxes(chart: Chart) -> Iterator[Chart]:
    yield chart
    for node in chart.nodes.values():
        if isinstance(node, Chart):
            yield from _boxes(node)


def _words(chart: Chart, name: str) -> str:
    node = chart.nodes[name]
    return node.title if isinstance(node, Chart) else node


def _laid_out(chart: Chart) -> _Drawn:
    """Draws a chart in columns: each node stands right of all that leads to it."""
    made = {
        name: _laid_out(node) if isinstance(node, Chart) else _plain(node)
        for name, node in chart.nodes.items()
    }
    ways, columns = _columns(chart)
    gaps = _gaps(chart, columns)
    tallest = max(
        sum(_height(made, name) for name in column) + _GAP * (len(column) - 1) for column in columns
    )
    elements, places, left = [], dict[str, tuple[float, float, float]](), 0.0
    for column, gap in zip(columns, gaps, strict=True):
        wide = max(made[name].width for name in column if name in made)
        used = sum(_height(made, name) for name in column) + _GAP * (len(column) - 1)
        top = (tallest - used) / 2
        for name in column:
            middle = top + _height(made, name) / 2
            places[name] = (left, middle, left + wide)
            if name in made:
                each = made[name]
                inset = (wide - each.width) / 2
                places[name] = (left + inset, middle, left + inset + each.width)
                elements.append(_moved(left + inset, top, each.elements))
            top += _height(made, name) + _GAP
        left += wide + gap
    lines = [_arrow([places[name] for name in way], words) for way, words in ways]
    inside = _Drawn(left - gaps[-1], tallest, (*lines, *elements))
    return _boxed(chart.title, inside) if chart.title else _framed(inside)


def _height(made: dict[str, _Drawn], name: str) -> float:
    return made[name].height if name in made else 4.0


def _columns(chart: Chart) -> tuple[list[tuple[list[str], str]], list[list[str]]]:
    """Returns the way of each arrow, over places in the columns between, and the columns."""
    rank = dict.fromkeys(chart.nodes, 0)
    for _ in rank:
        for first, _words, last in chart.arrows:
            rank[last] = max(rank[last], rank[first] + 1)
    columns: list[list[str]] = [[] for _ in range(max(rank.values()) + 1)]
    for name, number in rank.items():
        columns[number].append(name)
    ways = []
    for first, words, last in chart.arrows:
        between = [f"{first} {last} {number}" for number in range(rank[first] + 1, rank[last])]
        for number, name in enumerate(between, rank[first] + 1):
            columns[number].append(name)
        ways.append(([first, *between, last], words))
    steps = [pair for way, _ in ways for pair in itertools.pairwise(way)]
    # What leads to the same place stands side by side: two sweeps order so few nodes well.
    for _ in range(2):
        for left, right in itertools.pairwise(columns):
            _sort(right, left, [(to, by) for by, to in steps])
        for left, right in reversed(list(itertools.pairwise(columns))):
            _sort(left, right, steps)
    return ways, columns


def _sort(column: list[str], beside: Sequence[str], steps: Sequence[tuple[str, str]]) -> None:
    """Sorts a column by the middle of what its nodes are connected with in the one beside it."""

    def middle(name: str) -> float:
        there = [beside.index(to) for by, to in steps if by == name and to in beside]
        return sum(there) / len(there) if there else len(beside)

    column.sort(key=middle)


def _gaps(chart: Chart, columns: Sequence[Sequence[str]]) -> list[float]:
    """Returns the room after each column: for an arrow, and for its words."""
    longest = [0] * len(columns)
    for first, words, _ in chart.arrows:
        number = next(index for index, column in enumerate(columns) if first in column)
        longest[number] = max(longest[number], len(words))
    return [36 + _CHARACTER * length for length in longest]


def _plain(words: str) -> _Drawn:
    wide = _CHARACTER * len(words) + 20
    rectangle = (
        f'<rect width="{wide:.1f}" height="{_LINE}" rx="5" fill="none" stroke="currentColor"/>'
    )
    return _Drawn(wide, _LINE, (rectangle, _text(wide / 2, _LINE / 2 + 4.5, words)))


def _boxed(title: str, inside: _Drawn) -> _Drawn:
    wide = max(inside.width, _CHARACTER * len(title)) + 2 * _GAP
    high = inside.height + _TITLE + 1.5 * _GAP
    rectangle = (
        f'<rect width="{wide:.1f}" height="{high:.1f}" rx="5" fill="currentColor" '
        'fill-opacity="0.05" stroke="currentColor" stroke-dasharray="4 3"/>'
    )
    moved = _moved((wide - inside.width) / 2, _TITLE + _GAP / 2, inside.elements)
    return _Drawn(wide, high, (rectangle, _text(wide / 2, 17, title), moved))


def _framed(inside: _Drawn) -> _Drawn:
    """Returns a drawing with room for half the width of a line around it."""
    return _Drawn(inside.width + 4, inside.height + 4, (_moved(2, 2, inside.elements),))


def _moved(left: float, top: float, elements: Sequence[str]) -> str:
    return f'<g transform="translate({left:.1f} {top:.1f})">{"".join(elements)}</g>'


def _arrow(places: Sequence[tuple[float, float, float]], words: str) -> str:
    """Returns a line from the right of the first place to the left of the last one."""
    (_, y, x), *others = places
    path = f"M{x:.1f} {y:.1f}"
    for left, middle, right in others:
        bend = (left - x) / 2
        path += f"C{x + bend:.1f} {y:.1f} {left - bend:.1f} {middle:.1f} {left:.1f} {middle:.1f}"
        x, y = right, middle
        if (left, middle, right) != places[-1]:
            path += f"H{right:.1f}"
    line = f'<path d="{path}" fill="none" stroke="currentColor" marker-end="url(#tip)"/>'
    if not words:
        return line
    start, end = places[0][2], places[1][0]
    return line + _text((start + end) / 2, places[0][1] - 6, words)


def _text(x: float, y: float, words: str) -> str:
    said = html.escape(words)
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="currentColor">{said}</text>'
