"""Scales of plots: places of values on an axis that outliers do not stretch, and its ticks."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from orbax_bench_core.document.elements import Axis

_FEW: Final = 4
_DEVIATIONS: Final = 8.0

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
                ticks[place] = written(value) if value else "0"
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
    """Returns the values of a row that are not far above its median.

    Far is ten times the median of a few values; of more it is 8 median absolute deviations, scaled
    to a standard deviation, and twice the median at least.
    """
    if not row:
        return row
    middle = statistics.median(row)
    deviation = 1.4826 * statistics.median(abs(value - middle) for value in row)
    far = 9 * middle if len(row) < _FEW else max(_DEVIATIONS * deviation, middle)
    return [value for value in row if value <= middle + far]
