"""Pairs of measurements that were taken in turn, their ratios, and whether a target is met."""

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure with its target."""

    name: str  # what was measured
    unit: str  # unit of `ours` and `upstream`
    ours: tuple[float, ...]  # one value per round
    upstream: tuple[float, ...] | None = None
    """One value per round, paired with `ours` by position; None when not measured."""
    target: float  # what must not be exceeded; infinite where the figure is only shown
    limits: Literal["ratio", "value"]
    """Whether the target limits the median of the ratios, or the median of our values."""

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
        return statistics.median(judged) <= self.target


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Results of two sides that were measured in turn."""

    ours: tuple[Any, ...]  # one result per round
    upstream: tuple[Any, ...] | None  # as many of the other side; None when there is no other side

    def figure(
        self,
        name: str,
        unit: str,
        value: Callable[[Any], float],
        target: float,
        *,
        limits: Literal["ratio", "value"] = "ratio",
        beside: Callable[[Any], float] | None = None,
    ) -> Figure:
        """Returns a figure of these results.

        Args:
            name: What was measured.
            unit: Its unit.
            value: Takes it from a result.
            target: What must not be exceeded.
            limits: What the target limits.
            beside: Takes what it is compared with from our own result; None has the other side's.
        """
        others = self.upstream if beside is None else self.ours
        return Figure(
            name=name,
            unit=unit,
            ours=tuple(map(value, self.ours)),
            upstream=None if others is None else tuple(map(beside or value, others)),
            target=target,
            limits=limits,
        )


def milliseconds(name: str) -> Callable[[Mapping[str, float]], float]:
    """Returns what takes one of several seconds of a result, in milliseconds."""
    return lambda taken: 1e3 * taken[name]
