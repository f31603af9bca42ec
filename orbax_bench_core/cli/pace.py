"""Pace of a measurement: time stamps of its log, and the time that is left."""

from __future__ import annotations

import collections
import datetime
import itertools
import time
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from orbax_bench_core.document import shorten, wait

_FEWEST_SHARED: Final = 5
_SHORTEST: Final = 8


class Clock:
    """Clock of this machine."""

    def seconds(self) -> float:
        """Returns seconds since some moment."""
        return time.monotonic()

    def stamp(self) -> str:
        """Returns the time of day, such as `13:02:11`."""
        return f"{datetime.datetime.now().astimezone():%H:%M:%S}"


CLOCK: Final = Clock()


def print_line(console: Console, clock: Clock, line: Text) -> None:
    """Prints a line of any length; where nobody watches a terminal, with the time of day."""
    stamp = "" if console.is_terminal else f"{clock.stamp()} "
    console.print(Text.assemble(stamp, line), highlight=False, soft_wrap=True)


class Pace:
    """Time that each step of a measurement takes, by its latest steps."""

    def __init__(self, window: int, clock: Clock = CLOCK) -> None:
        """Looks at the latest `window` steps, such as those of one round."""
        self._clock = clock
        self._ends: collections.deque[float] = collections.deque(maxlen=max(1, window) + 1)

    def begins(self) -> None:
        """Begins to count, where nothing has begun."""
        if not self._ends:
            self._ends.append(self._clock.seconds())

    def step(self) -> None:
        """Counts a step that has just ended."""
        self.begins()
        self._ends.append(self._clock.seconds())

    def seconds(self, steps: float) -> float | None:
        """Returns the seconds that so many steps will take; None where none has ended."""
        if len(self._ends) < 2:
            return None
        return steps * (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1)

    def left(self, steps: float) -> str:
        """Returns what is left for people, such as `4 min left`; empty where nothing is known."""
        seconds = self.seconds(steps)
        return "" if seconds is None or steps <= 0 else f"{wait(seconds / 60)} left"


class Names:
    """Names of points, where there is room for a part of each."""

    def __init__(self, names: Sequence[str]) -> None:
        """Looks at what all names have in common."""
        self._several = len(names) > 1
        self._start, self._end = _shared(names)

    def fitting(self, name: str, width: int) -> str:
        """Returns a name that fits, without what all names have in common where it must be cut."""
        if len(name) > width and self._several:
            # As much of what they share is kept as there is room for, from the start of the rest.
            needed = len(name) - self._start - self._end + bool(self._start) + bool(self._end)
            start = max(0, self._start - max(0, width - needed))
            cut = name[start : len(name) - self._end]
            name = f"{'…' if start else ''}{cut}{'…' if self._end else ''}"
        return shorten(name, max(_SHORTEST, width))


def _shared(names: Sequence[str]) -> tuple[int, int]:
    """Returns how many characters all names begin with, and how many they end with.

    A few that agree by chance count as none.
    """
    start = _shared_start(names)
    end = _shared_start([name[start:][::-1] for name in names])
    return start * (start >= _FEWEST_SHARED), end * (end >= _FEWEST_SHARED)


def _shared_start(names: Sequence[str]) -> int:
    columns = itertools.takewhile(lambda column: len(set(column)) == 1, zip(*names, strict=False))
    return sum(1 for _ in columns)
