"""Numbers as text, the same in every report, and as places on an axis."""

import dataclasses
import functools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, Self, TypeAlias

Ticks: TypeAlias = tuple[tuple[float, str], ...]
"""Ticks of an axis: place in percent of its length from its low end, and label."""

UNIT: Final = r"(?:µs|ms|s|min|h|B|[KMGT]iB|[KMGT]iB/s|%)(?![\w/])"
"""Pattern of a unit behind a number and a space, which no line break parts."""


def seconds(value: float) -> str:
    """Returns a duration with a unit that suits its size, to three digits."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (600.0, 1.0, "s")):
        if abs(value) < limit:
            return f"{digits(value * factor)} {unit}"
    return f"{digits(value / 60)} min"


def wait(minutes: float) -> str:
    """Returns minutes for people, such as `40 s`, `12 min` or `2.5 h`."""
    if minutes < 1:
        return f"{60 * minutes:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def percent(ratio: float | None, decimals: int = 0) -> str:
    """Returns a ratio in percent, such as `40 %`; a dash when there is none."""
    return "–" if ratio is None else f"{ratio * 100:.{decimals}f} %"


def share(ratio: float, figures: int = 3, sign: Literal["", "+"] = "") -> str:
    """Returns a ratio in percent with the digits that it has, such as `0.5 %`, or `+0.5 %`."""
    return f"{digits(100 * ratio, figures, sign)} %"


def change(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """Returns by how much a ratio differs from 1, with its interval: `+5 % (-8 to +16 %)`.

    Beyond threefold it is a ratio, such as `3.4x`, as it is below 2 %, whose digits would be lost.

    Args:
        ratio: What was, as a multiple of what it is compared with.
        low: Lower end of its interval; None if unknown.
        high: Upper end; None if unknown.
    """
    ends = [end for end in (low, high) if end is not None and math.isfinite(end) and end > 0]
    if not all(0.02 <= each < 3 for each in (ratio, *ends)):
        said, between = f"{digits(ratio)}x", [digits(end) for end in ends]
        unit = "x"
    else:
        said, between = f"{_whole(ratio)} %", [_whole(end) for end in ends]
        unit = " %"
    if len(between) == 2:
        return f"{said} ({between[0]} to {between[1]}{unit})"
    if not between:
        return said
    return f"{said} ({'at least' if low in ends else 'at most'} {between[0]}{unit})"


def _whole(ratio: float) -> str:
    """Returns the change of a ratio in whole percent, where what rounds to nothing is `+0`."""
    return f"{round(100 * (ratio - 1)):+d}"


def num_bytes(value: float) -> str:
    """Returns a size in binary units, to three digits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{digits(value)} {unit}"
        value /= 1024
    return f"{digits(value)} TiB"


def count(number: int, what: str, several: str = "") -> str:
    """Returns a number of things: `1 point`, `2 points`, or `2 lives` where that is given."""
    return f"{number} {what if number == 1 else several or f'{what}s'}"


@functools.lru_cache(maxsize=4096)  # tables of many repeats say the same again and again
def table_cell(text: str) -> str:
    """Returns text as the cell of a Markdown table, which a bar or a new line would end."""
    return " ".join(text.replace("|", "\\|").split())


def digits(value: float, figures: int = 3, sign: Literal["", "+"] = "") -> str:
    """Returns a number to `figures` digits, without an exponent."""
    # From 999.5 on, `.3g` would write an exponent.
    large = abs(value) >= 10**figures - 0.5
    return f"{value:{sign}.0f}" if large else f"{value:{sign}.{figures}g}"


_FEW: Final = 4
_DEVIATIONS: Final = 8.0

_ROOM: Final = 0.15
"""Least distance of two ticks, as a share of the axis: room for a label."""

_STEPS: Final = (1.0, 3.0, 2.0, 5.0, 4.0, 7.0, 1.5)
"""Digits of ticks on a log scale, the roundest first."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scale:
    """A scale of positive values."""

    low: float  # value at the left end
    high: float  # value at the right end
    log: bool = True  # whether equal distances are equal ratios

    @classmethod
    def of(cls, rows: Iterable[Sequence[float]]) -> Self:
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

    def axis(self, written: Callable[[float], str]) -> Ticks:
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
