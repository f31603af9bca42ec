"""Axes of ratios: logarithmic, with the tolerance and the margin of the gate shown."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from orbax_bench_core.report import figures

if TYPE_CHECKING:
    from matplotlib.axis import Axis

WIDEST: Final = 20.0
"""Ratio at which an axis ends, whatever would lie beyond."""

_STEPS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_FEW: Final = 6


def ratio_limits(values: Iterable[float], margin: float) -> tuple[float, float]:
    """Returns the ends of an axis that shows all values, no change and the margin.

    Args:
        values: Ratios; those that are not finite or not positive are left out.
        margin: The margin of the gate, such as 0.15.
    """
    shown = [value for value in values if math.isfinite(value) and value > 0]
    low, high = min([*shown, 1 / (1 + margin)]), max([*shown, 1 + margin])
    room = 0.06 * math.log(high / low)
    return (
        max(low * math.exp(-room), 1 / WIDEST),
        min(high * math.exp(room), WIDEST),
    )


def ratio_axis(axis: Axis, low: float, high: float) -> None:
    """Makes an axis of a log scale one of ratios, such as 0.9x, 1x and 1.1x.

    Args:
        axis: The axis.
        low: Its lower end.
        high: Its upper end.
    """
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    ticks = _ticks(low, high)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([f"{tick:g}x" for tick in ticks]))
    axis.set_minor_locator(NullLocator())
    axis.grid(visible=True, color=figures.LINE, linewidth=0.5)


def _ticks(low: float, high: float) -> list[float]:
    """Returns a few round ratios between two ends."""
    if high / low > 4:
        powers = [2.0**power for power in range(-5, 6)]
        return [tick for tick in powers if low <= tick <= high]
    for step in _STEPS:
        first, last = math.ceil(low / step), math.floor(high / step)
        if last - first < _FEW:
            return [round(index * step, 10) for index in range(first, last + 1) if index]
    return [1.0]
