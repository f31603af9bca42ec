"""Growth per save: Theil-Sen slope with a moving-block bootstrap, and the verdict on a limit.

The slope is the median of the slopes between all pairs of saves (Sen, 1968), which neither a step
nor a spike moves far. Memory is correlated from save to save, so residuals are drawn in blocks of
neighbours (Künsch, 1989). A heap that still fills up looks like a leak from its beginning and stops
growing later: so whatever is decided has to hold for the second half alone as well.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.analysis.soak.model import Slope, SoakWord

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]

DROPPED: Final = 20
"""First saves of a process, in which it compiles, fills caches and starts threads."""
FEWEST: Final = 200
"""Fewest saves of one process that a verdict rests on, the dropped ones among them.

A heap of 30 MiB that fills with a time constant of 60 saves grows by less than 0.1 MiB a save in
the second half of these. With 120 saves it was called a leak in 12 of 20 simulated soaks.
"""

_BLOCK: Final = 15
"""Neighbours that are drawn together: correlation that reaches further is not covered."""
_DRAWS: Final = 600
_AT_ONCE: Final = 20
_MOST: Final = 400
"""Points of a series; a longer one is made of the means of as many neighbours as it takes."""
_COVERAGE: Final = 0.95
_FARTHEST: Final = 100_000
_NEAR: Final = 0.05
_EXACT: Final = 1e-9


def slope_of(values: Sequence[float]) -> Slope:
    """Returns the growth per save of a level, with its 95 % interval.

    Args:
        values: A level after each save, in order; long series are averaged in groups first.

    Returns:
        Units of the level per save. A level that is exactly on a line has an interval without
        width.
    """
    import numpy as np

    stride = -(-len(values) // _MOST)
    # What does not fill a group is left out at the beginning, where it matters least.
    kept = np.asarray(values[len(values) % stride :], np.float64)
    levels = kept.reshape(-1, stride).mean(1)
    slope = float(np.median(_pair_slopes(levels[None])))
    residuals = levels - slope * np.arange(len(levels))
    # A level that stays, or grows by as much each time.
    if np.allclose(residuals, residuals[0], rtol=0, atol=_EXACT):
        return Slope(per_save=slope / stride, low=slope / stride, high=slope / stride)
    # A fixed seed: the same soak has the same interval whenever it is judged.
    starts = np.random.default_rng(len(levels)).integers(
        0, max(1, len(levels) - _BLOCK + 1), (_DRAWS, -(-len(levels) // _BLOCK))
    )
    places = (starts[..., None] + np.arange(min(_BLOCK, len(levels)))).reshape(_DRAWS, -1)
    drawn = residuals[places[:, : len(levels)]]
    # A line that is added to every draw adds its slope to that of the draw.
    slopes = np.concatenate(
        [
            np.median(_pair_slopes(drawn[first : first + _AT_ONCE]), axis=1)
            for first in range(0, _DRAWS, _AT_ONCE)
        ]
    )
    low, high = np.quantile(slope + slopes, [(1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2])
    return Slope(per_save=slope / stride, low=float(low) / stride, high=float(high) / stride)


def word_of(whole: Slope, half: Slope, limit: float) -> SoakWord:
    """Returns LEAK or PASS where both slopes agree on which side of the limit they are.

    Args:
        whole: Growth over all saves.
        half: Growth over the last half, in which a process that only fills its caches no longer
            grows.
        limit: Largest growth per save that is no leak, in the unit of the slopes.
    """
    if min(whole.low, half.low) > limit:
        return "LEAK"
    if max(whole.high, half.high) < limit:
        return "PASS"
    return "INCONCLUSIVE"


def saves_to_decide(whole: Slope, half: Slope, limit: float, saves: int) -> int | None:
    """Returns about how many saves a verdict takes; None if more would not bring one.

    The interval of a slope shrinks with the power 3/2 of the number of saves. Where both slopes are
    on different sides, the process is still warming up, and twice as many saves tell.
    """
    if (whole.per_save > limit) != (half.per_save > limit):
        return 2 * saves
    factor = 1.0
    for slope in (whole, half):
        away = abs(slope.per_save - limit)
        if away < _NEAR * limit:
            return None
        reach = (
            slope.high - slope.per_save if slope.per_save < limit else slope.per_save - slope.low
        )
        factor = max(factor, (reach / away) ** (2 / 3))
    needed = DROPPED + math.ceil(1.2 * factor * (saves - DROPPED))
    return needed if needed < _FARTHEST else None


def _pair_slopes(rows: Array) -> Array:
    first, second = _pairs(rows.shape[1])
    slopes: Array = (rows[:, second] - rows[:, first]) / (second - first)
    return slopes


@functools.lru_cache(maxsize=4)
def _pairs(length: int) -> tuple[Any, Any]:
    import numpy as np

    return np.triu_indices(length, 1)
