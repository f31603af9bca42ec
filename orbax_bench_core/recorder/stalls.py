"""The time that operations of a job usually take, learned from the job, and what is far beyond."""

import collections
import statistics
from typing import Final

_FEWEST: Final = 10
"""Operations before which nothing is usual."""
_KEPT: Final = 100
_LEAST_S: Final = 1.0
"""Seconds beyond the usual that nobody minds once."""


class Band:
    """Seconds of the last operations of one kind."""

    def __init__(self) -> None:
        """Has seen none."""
        self._seen: collections.deque[float] = collections.deque(maxlen=_KEPT)

    def add(self, seconds: float) -> None:
        """Learns from an operation that has ended."""
        self._seen.append(seconds)

    @property
    def usual(self) -> float:
        """The median."""
        return statistics.median(self._seen)

    @property
    def limit(self) -> float | None:
        """Seconds from which an operation is a stall; None if too few were seen.

        Five medians, three times what nine of ten stay below, and a second on top: of the saves of
        a job that has no trouble none is beyond, also on a noisy machine.
        """
        if len(self._seen) < _FEWEST:
            return None
        most = sorted(self._seen)[int(0.9 * (len(self._seen) - 1))]
        return max(5 * self.usual, 3 * most) + _LEAST_S
