"""Regimes of a series: two groups of times that are clearly apart, and slow first values."""

from __future__ import annotations

import dataclasses
import math
from typing import Final

import numpy as np

from orbax_bench_core.gate.blocks import Bools, Floats
from orbax_bench_core.gate.noise import robust_sigma

FEWEST: Final = 10
"""Below so many values two groups and one with a hole look alike."""

_SMALLEST_GROUP: Final = 0.25
_CLEAR_GAP: Final = 0.8
_CLEARER_GAP_OF_FEW: Final = 30.0
_LARGE_RATIO: Final = 1.05

_FEWEST_AFTER_START: Final = 4
_START_SHARE: Final = 0.5
_START_RATIO: Final = 1.25
_START_GAP: Final = 4.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Regimes:
    """Two separate groups of values.

    Attributes:
        slow: Which values are in the slow group.
        ratio: Median of the slow group over that of the fast one.
        switches: How often the series goes from one to the other.
    """

    slow: Bools
    ratio: float
    switches: int


def find_regimes(logs: Floats) -> Regimes | None:
    """Splits a series at the largest gap between its sorted values, where that is a real one.

    The gap counts between the quartiles, so that some stalls are outliers and no regime. It is real
    when it is 0.8 + 30 / n times as wide as the standard deviation within the groups, which less
    than 1 % of series of n normal values have.
    """
    count = len(logs)
    if count < FEWEST:
        return None
    ordered = np.sort(logs)
    smallest = max(2, math.ceil(_SMALLEST_GROUP * count))
    gaps = np.diff(ordered)[smallest - 1 : count - smallest]
    split = int(gaps.argmax()) + smallest
    gap = float(ordered[split] - ordered[split - 1])
    fast, slow = ordered[:split], ordered[split:]
    ratio = math.exp(np.median(slow) - np.median(fast))
    clear = (_CLEAR_GAP + _CLEARER_GAP_OF_FEW / count) * _spread_within(fast, slow)
    if gap <= clear or ratio < _LARGE_RATIO:
        return None
    is_slow = np.asarray(logs >= slow[0])
    return Regimes(slow=is_slow, ratio=ratio, switches=int(np.count_nonzero(np.diff(is_slow))))


def slow_start(logs: Floats) -> int:
    """Returns how many values at the start stand clear above all others; 0 where none do.

    A cache that the first operations had to fill shows itself so. They must make up no more than
    half of the series, be 1.25 times as slow by their medians, and be apart from the rest by four
    of its robust standard deviations.
    """
    best, widest = 0, 0.0
    for first in range(1, int(_START_SHARE * len(logs)) + 1):
        start, rest = logs[:first], logs[first:]
        if len(rest) < _FEWEST_AFTER_START:
            break
        gap = float(start.min() - rest.max())
        if gap <= widest:
            continue
        clear = gap > _START_GAP * (robust_sigma(rest) or 0.0)
        large = bool(np.median(start) - np.median(rest) > math.log(_START_RATIO))
        if clear and large:
            best, widest = first, gap
    return best


def _spread_within(fast: Floats, slow: Floats) -> float:
    squares = ((fast - fast.mean()) ** 2).sum() + ((slow - slow.mean()) ** 2).sum()
    return math.sqrt(float(squares) / (len(fast) + len(slow) - 2))
