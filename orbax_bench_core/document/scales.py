"""Scales of plots: places of values on an axis that outliers do not stretch, and its ticks."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from orbax_bench_core.document.elements import Axis

_FENCE: Final = 3.0
"""Interquartile ranges beyond the upper quartile from which on a value is an outlier."""

_ROOM: Final = 0.15
"""Least distance of two ticks, as a share of the axis: room for a label."""

_STEPS: Final = (1.0, 3.0, 2.0, 5.0, 4.0, 7.0, 1.5)
"""Digits of ticks on a log scale, the roundest first."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scale:
    """A scale of positive values.

    Attributes:
        low: Value at the left end.
        high: Value at the right end.
        log: Whether equal distances are equal ratios.
    """

    low: float
    high: float
    log: bool = True

    @classmethod
    def of(cls, rows: Iterable[Sequence[float]]) -> Scale:
        """Returns a scale that shows every row, but for values that are far out in their row."""
        shown = [value for row in rows for value in _inliers(row)]
        low, high = min(shown, default=1.0), max(shown, default=1.0)
        if low <= 0:
            return cls(0.0, high or 1.0, log=False)
        room = max(high / low, 1.02) ** 0.03
        return cls(low / room, high * room)

    def place(self, value: float) -> float:
        """Returns where a value is, in percent from the left; what lies beyond is at an end."""
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return 100 * min(max(share, 0.0), 1.0)

    def axis(self, written: Callable[[float], str]) -> Axis:
        """Returns a few round ticks; `written` writes a number with its unit."""
        ticks: dict[float, str] = {}
        for value in self._round():
            place = self.place(value)
            if all(abs(place - other) >= 100 * _ROOM for other in ticks):
                ticks[place] = written(value)
        return tuple(sorted(ticks.items()))

    def _round(self) -> Iterator[float]:
        """Yields round numbers on the scale, the roundest first."""
        if self.log and self.high / self.low > 2:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
            numbers = (step * 10.0**power for step in _STEPS for power in powers)
            yield from (number for number in numbers if self.low <= number <= self.high)
            return
        rough = (self.high - self.low) / 4
        step = 10.0 ** math.floor(math.log10(rough))
        step *= next(factor for factor in (1, 2, 5, 10) if factor * step >= 0.999 * rough)
        for number in range(math.ceil(self.low / step), math.floor(self.high / step) + 1):
            yield number * step


def _inliers(row: Sequence[float]) -> Sequence[float]:
    if len(row) < 4:
        # Of two or three values nobody can say which is out, unless it is out by much.
        middle = statistics.median(row) if row else 0.0
        return [value for value in row if value <= 10 * middle]
    low, _, high = statistics.quantiles(row, n=4, method="inclusive")
    fence = high + _FENCE * max(high - low, 0.05 * high)
    return [value for value in row if value <= fence]
