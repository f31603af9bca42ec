"""Online change detection over past runs, by a maximal rank statistic once a night.

At each night the runs of a season are cut where the normal scores of their ranks differ most on the
two sides, T = max over cuts k of |sum of the scores before k| / (s sqrt(k (n - k) / n)), with s
their standard deviation (D. M. Hawkins and Q. Deng, "A nonparametric change-point control chart",
J. Quality Technology 42 (2010) 165, with normal scores for Wilcoxon's). A flag is raised when T is
above a threshold, stands from then on, and is neither tested again nor withdrawn; the next season
begins at the cut. A search that begins again every night, at 1 %, flags one series in eight within
60 nights although nothing has changed.

Ranks alone count, so one wild run is no more than one run, and the chance of a flag in a series
without any change is the same for every distribution of its values. Thresholds are quantiles of the
largest T over random orders, from `python -m perf.history --thresholds`.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

FEWEST: Final = 10
"""Runs of a season before anything is flagged."""

SIGNIFICANCE: Final = 0.05
"""Share of the series without any change in which a flag is raised within a season's 60 nights."""

LEAST: Final = 0.001
MOST: Final = 0.1

SEASON: Final = 60
"""Nights that the first column of thresholds is for; the second is for each 60 nights after."""

SMALLEST_PART: Final = 4

NEAR: Final = 3
"""Nights by which a change may be placed too early or too late."""

_THRESHOLDS: Final = (
    (0.1, 3.18, 3.49),
    (0.05, 3.36, 3.71),
    (0.02, 3.57, 3.97),
    (0.01, 3.71, 4.15),
    (0.005, 3.84, 4.32),
    (0.002, 4.01, 4.53),
    (0.001, 4.12, 4.69),
    (0.0005, 4.23, 4.87),
    (0.0002, 4.37, 5.04),
    (0.0001, 4.47, 5.13),
)
"""Chance of a flag, and the thresholds for it: within nights 10 to 60 of a season, and within any
60 nights after. Quantiles over 2,000,000 and 40,000 random orders, rounded up by 0.01 to 0.03."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """Flag of a series."""

    cut: int  # index of the first value after the change
    night: int  # index of the value after which the flag was raised
    statistic: float  # largest cut statistic of that night
    threshold: float  # what it exceeded


def flags(values: Sequence[float], level: Callable[[int, int], float]) -> list[Flag]:
    """Returns the flags that were raised, one night after the other, in order.

    Without a change the values must be exchangeable: independent, or nearly so. Log ratios to a
    reference that was measured at the same time are; raw seconds, which wander from day to day, are
    not, and would be flagged all the time.
    """
    found: list[Flag] = []
    start = 0
    for night in range(len(values)):
        season = values[start : night + 1]
        cut, statistic = largest_cut(season)
        if statistic <= threshold(MOST, len(season)):
            continue
        place = start + _placed(season, cut)
        limit = threshold(level(place, night), len(season))
        if statistic > limit:
            flag = Flag(cut=place, night=night, statistic=statistic, threshold=limit)
            found.append(flag)
            start = flag.cut
    return found


def _placed(season: Sequence[float], cut: int) -> int:
    """Returns the cut near one by ranks that leaves the least deviations from two medians.

    Ranks do not see that a run beside a clear step is far nearer to one of its sides.
    """
    import numpy as np

    values = np.asarray(season)

    def misfit(place: int) -> float:
        sides = values[:place], values[place:]
        return sum(float(np.abs(side - np.median(side)).sum()) for side in sides)

    low, high = SMALLEST_PART, len(season) - SMALLEST_PART
    return min(range(max(low, cut - NEAR), min(high, cut + NEAR) + 1), key=misfit)


def largest_cut(season: Sequence[float]) -> tuple[int, float]:
    """Returns the cut of a season at which its two sides differ most, and the statistic there.

    A season that is too short, or whose values are all equal, has no cut: 0.
    """
    count = len(season)
    if count < FEWEST:
        return 0, 0.0
    import numpy as np

    scores = _normal_scores(season)
    spread = float(np.sqrt((scores**2).mean()))
    if not spread:
        return 0, 0.0
    cuts = np.arange(SMALLEST_PART, count - SMALLEST_PART + 1)
    sums = np.abs(np.cumsum(scores)[cuts - 1])
    statistics = sums / (spread * np.sqrt(cuts * (count - cuts) / count))
    best = int(statistics.argmax())
    return int(cuts[best]), float(statistics[best])


def threshold(level: float, nights: int) -> float:
    """Returns what the statistic of a night must exceed.

    Between the levels of the table the squares of the thresholds are interpolated over the
    logarithm of the level, in which they are nearly straight; below, the last line goes on.
    """
    column = 1 if nights <= SEASON else 2
    rows = [(-math.log(row[0]), row[column] ** 2) for row in _THRESHOLDS]
    wanted = -math.log(min(level, MOST))
    above = next((i for i in range(1, len(rows)) if rows[i][0] >= wanted), len(rows) - 1)
    (left, low), (right, high) = rows[above - 1], rows[above]
    return math.sqrt(low + (high - low) * (wanted - left) / (right - left))


def _normal_scores(values: Sequence[float]) -> Any:
    """Returns what values of those ranks would be in a normal sample, less their mean."""
    import numpy as np
    from scipy.stats import rankdata

    ranks = rankdata(values)
    # Tied values share a rank that is a multiple of one half.
    scores = _quantiles(len(values))[np.asarray(2 * ranks, dtype=int)]
    return scores - scores.mean()


@functools.lru_cache(maxsize=512)
def _quantiles(count: int) -> Any:
    """Returns the normal quantile of each rank of `count` values, doubled ranks as the index."""
    import numpy as np
    from scipy.special import ndtri

    return ndtri(np.clip((np.arange(2 * count + 1) / 2 - 0.5) / count, 1e-9, 1 - 1e-9))
