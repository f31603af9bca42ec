"""Pace of a measurement: time stamps of its log, and the time that is left."""

from __future__ import annotations

import collections
import datetime
import itertools
import statistics
import time
from collections.abc import Collection, Sequence
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
    """Time that each step of a measurement takes, by its latest steps.

    First steps, which also start a worker, warm it up and compile, are counted apart: of the
    others they are no more than a bound.
    """

    def __init__(self, window: int, clock: Clock = CLOCK) -> None:
        """Looks at the latest `window` steps, such as those of one round."""
        self._clock = clock
        self._since: float | None = None
        self._usual: collections.deque[float] = collections.deque(maxlen=max(1, window))
        self._first: collections.deque[float] = collections.deque(maxlen=max(1, window))

    def begins(self) -> None:
        """Begins to count, where nothing has begun."""
        self._since = self._clock.seconds() if self._since is None else self._since

    def step(self, *, first: bool = False) -> None:
        """Counts a step that has just ended."""
        self.begins()
        now, since = self._clock.seconds(), self._since
        assert since is not None
        (self._first if first else self._usual).append(now - since)
        self._since = now

    def seconds(self, steps: float, firsts: float = 0) -> float | None:
        """Returns the seconds that so many steps will take; None where none has ended.

        Of these `firsts` are first ones. It is a bound until a step has ended that is none.
        """
        usual, first = _mean(self._usual or self._first), _mean(self._first or self._usual)
        if usual is None or first is None:
            return None
        return (steps - firsts) * usual + firsts * first

    def left(self, steps: float, firsts: float = 0) -> str:
        """Returns what is left for people, such as `4 min left`; empty where nothing is known.

        A bound is told as one: `up to 4 min left`.
        """
        seconds = self.seconds(steps, firsts)
        if seconds is None or steps <= 0:
            return ""
        bound = "" if self._usual or steps <= firsts else "up to "
        return f"{bound}{wait(seconds / 60)} left"


def _mean(durations: Collection[float]) -> float | None:
    return statistics.fmean(durations) if durations else None


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
