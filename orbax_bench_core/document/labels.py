"""Places of labels beside the marks of a figure, so that none covers another one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_APART: Final = 5.0
"""Room between a mark and its label, in points."""

_ROWS_AWAY: Final = 9


class Rectangle(NamedTuple):
    """A part of a figure, in points from its lower left corner."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: Rectangle) -> bool:
        """Returns whether the two have a common part."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.bottom < other.top
            and other.bottom < self.top
        )

    def within(self, other: Rectangle) -> bool:
        """Returns whether it lies wholly in another one."""
        return (
            other.left <= self.left
            and other.bottom <= self.bottom
            and self.right <= other.right
            and self.top <= other.top
        )


def places(
    labelled: Sequence[tuple[float, float]],
    widths: Sequence[float],
    height: float,
    *,
    marks: Sequence[tuple[float, float]],
    room: Rectangle,
) -> list[Rectangle | None]:
    """Returns where each label goes: near its mark, over no mark and no other label."""
    taken = [Rectangle(x - 3, y - 3, x + 3, y + 3) for x, y in marks]
    found = []
    for (x, y), width in zip(labelled, widths, strict=True):
        free = (
            one
            for one in _around(x, y, width, height)
            if one.within(room) and not any(one.meets(other) for other in taken)
        )
        place = next(free, None)
        taken += [] if place is None else [place]
        found.append(place)
    return found


def _around(x: float, y: float, width: float, height: float) -> Iterator[Rectangle]:
    """Yields places for a label, the nearest first: right or left of its mark, then rows away."""
    steps = (0, *itertools.chain(*((row, -row) for row in range(1, _ROWS_AWAY))))
    for step in steps:
        bottom = y - height / 2 + step * height
        for left in (x + _APART, x - _APART - width):
            yield Rectangle(left, bottom, left + width, bottom + height)
