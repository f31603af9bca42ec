"""Pairs of measurements that were taken in turn, their ratios, and whether a target is met."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Pairs(Generic[Result]):
    """Results of two sides that were measured in turn.

    Attributes:
        ours: One result per round.
        upstream: As many of the other side; None when there is no other side.
    """

    ours: tuple[Result, ...]
    upstream: tuple[Result, ...] | None

    def values(
        self, value: Callable[[Result], float]
    ) -> tuple[tuple[float, ...], tuple[float, ...] | None]:
        """Returns one number per result: ours, and upstream's."""
        other = None if self.upstream is None else tuple(map(value, self.upstream))
        return tuple(map(value, self.ours)), other


def alternate(
    rounds: int,
    ours: Callable[[], Result],
    upstream: Callable[[], Result] | None,
    *,
    say: Callable[[str], None],
    discard: int = 1,
) -> Pairs[Result]:
    """Measures both sides in turn, so that a drifting machine slows both members of a pair.

    Args:
        rounds: Pairs to keep; at least 1.
        ours: Measures our side once.
        upstream: Measures the other side once; None when there is none.
        say: Told of every measurement before it is made.
        discard: Pairs to make first and throw away: they fill byte code and page caches.
    """
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}; at least one pair is needed")
    mine: list[Result] = []
    theirs: list[Result] = []
    for index in range(discard + rounds):
        name = "warm-up" if index < discard else f"{index - discard + 1} of {rounds}"
        say(f"{name}, ours")
        mine.append(ours())
        if upstream is not None:
            say(f"{name}, upstream")
            theirs.append(upstream())
    return Pairs(ours=tuple(mine[discard:]), upstream=tuple(theirs[discard:]) if upstream else None)


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The middle and the ends of some values."""

    median: float
    minimum: float
    maximum: float


def spread(values: Sequence[float]) -> Spread:
    """Returns median, minimum and maximum of at least one value."""
    return Spread(median=statistics.median(values), minimum=min(values), maximum=max(values))


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure with its target.

    Attributes:
        name: What was measured.
        unit: Unit of `ours` and `upstream`.
        ours: One value per round.
        upstream: One value per round, paired with `ours` by position; None when not measured.
        target: What must not be exceeded; infinite where the figure is only shown.
        limits: Whether the target limits the median of the ratios, or the median of our values.
    """

    name: str
    unit: str
    ours: tuple[float, ...]
    upstream: tuple[float, ...] | None = None
    target: float
    limits: Literal["ratio", "value"]

    @property
    def ratios(self) -> tuple[float, ...] | None:
        """Ours over upstream's, pair by pair; None without upstream."""
        if self.upstream is None:
            return None
        return tuple(a / b for a, b in zip(self.ours, self.upstream, strict=True))

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None when that was not measurable, or nothing is asked."""
        judged = self.ours if self.limits == "value" else self.ratios
        if judged is None or math.isinf(self.target):
            return None
        return spread(judged).median <= self.target
