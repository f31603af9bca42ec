"""Online change detection over past runs, by a maximal rank statistic once a night.

At each night the runs of a season are cut where the normal scores of their ranks differ most on the
two sides, T = max over cuts k of |sum of the scores before k| / (s sqrt(k (n - k) / n)), with s
their standard deviation (D. M. Hawkins and Q. Deng, "A nonparametric change-point control chart",
J. Quality Technology 42 (2010) 165, with normal scores for Wilcoxon's). A flag is raised when T is
above a threshold, stands from then on, and is neither tested again nor withdrawn; the next season
begins at the cut. A search that begins again every night, at 1 %, flags one series in eight within
60 nights although nothing has changed.

Ranks alone count, so one wild run is no more than one run, and the chance of a flag in a series of
independent runs without any change is the same for every distribution of its values. Thresholds are
quantiles of the largest T over random orders, from `python -m perf.history --thresholds`.

Runs of successive nights may depend on each other: an offset of the machine that lasts for days
moves sums of scores farther than random orders do. Thresholds are therefore multiplied by the root
of `dependence`, which is estimated from all runs so far. Correlations of a series are estimated too
small by about its dependence over the number of runs, for each mean that is subtracted; they are
corrected for that (F. H. C. Marriott and J. A. Pope, "Bias in the estimation of autocorrelations",
Biometrika 41 (1954) 390), which few runs overdo rather than not. What is left at a correlation
of 0.8 from night to night is in `perf.history`. Offsets that last for a season look like changes,
and are.
"""

import dataclasses
import functools
import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any, Final

FEWEST: Final = 10
"""Runs of a season before any is tested; what can be flagged takes more, see `fewest_runs`."""

SIGNIFICANCE: Final = 0.05
"""Share of the series without any change in which a flag is raised within a season's 60 nights."""

LEAST: Final = 0.001
MOST: Final = 0.1

SEASON: Final = 60
"""Nights that the first column of thresholds is for; the second is for each 60 nights after."""

SMALLEST_PART: Final = 4

NEAR: Final = 3
"""Nights by which a change may be placed too early or too late."""

_LAGS: Final = 3
"""A correlation is estimated from runs that are at most a third of all nights apart."""

_CLEAR: Final = 5.0
"""Standard deviations of one run by which a step is larger than offsets that come and go."""

YEAR: Final = 365
"""Nights for which a flag makes the next one less likely: at most one a year is to be false."""

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

    Without a change the values must be stationary, such as log ratios to a reference that was
    measured at the same time; they may depend on each other for some nights. Raw seconds vary
    from day to day for longer, and would be flagged too often.
    """
    import numpy as np

    found: list[Flag] = []
    start = 0
    every, ranks = np.asarray(values), np.zeros(len(values), dtype=int)
    for night in range(len(values)):
        season = every[start : night + 1]
        _add_rank(ranks[start : night + 1], season)
        cut, statistic = _largest(ranks[start : night + 1])
        if statistic <= threshold(MOST, len(season)):
            continue
        ends = (0, *(flag.cut for flag in found), start + cut, night + 1)
        recent = sum(night - flag.night < YEAR for flag in found)
        rise = math.sqrt(dependence(values[: night + 1], ends, recent))
        if statistic <= rise * threshold(MOST, len(season)):
            continue
        place = start + _placed(season, cut)
        limit = rise * threshold(level(place, night), len(season))
        if statistic > limit:
            flag = Flag(cut=place, night=night, statistic=statistic, threshold=limit)
            found.append(flag)
            start = flag.cut
            ranks[start : night + 1] = _ranks(every[start : night + 1])
    return found


def fewest_runs(level: float) -> int:
    """Returns the runs of a season before which nothing can be flagged, whatever they measure.

    The clearest change there is, in the middle from lower runs to higher ones, stays below the
    threshold of fewer.
    """

    def clearest(count: int) -> float:
        # As `_largest` has it, without libraries that take longer to import than a short history.
        scores = [statistics.NormalDist().inv_cdf((at + 0.5) / count) for at in range(count)]
        spread, half = math.hypot(*scores) / math.sqrt(count), count // 2
        return -sum(scores[:half]) / (spread * math.sqrt(half * (count - half) / count))

    return next(
        count for count in itertools.count(FEWEST) if clearest(count) > threshold(level, count)
    )


def _placed(season: Any, cut: int) -> int:
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


def _largest(ranks: Any) -> tuple[int, float]:
    """Returns the cut at which two sides of a season differ most, and the statistic there.

    A season that is too short, or whose values are all equal, has no cut: 0.

    Args:
        ranks: Those of its values, doubled.
    """
    count = len(ranks)
    if count < FEWEST:
        return 0, 0.0
    import numpy as np

    scores = _normal_scores(ranks)
    spread = float(np.sqrt((scores**2).mean()))
    if not spread:
        return 0, 0.0
    cuts = np.arange(SMALLEST_PART, count - SMALLEST_PART + 1)
    sums = np.abs(np.cumsum(scores)[cuts - 1])
    statistics = sums / (spread * np.sqrt(cuts * (count - cuts) / count))
    best = int(statistics.argmax())
    return int(cuts[best]), float(statistics[best])


def dependence(values: Sequence[float], ends: Sequence[int], recent: int = 0) -> float:
    """Returns the variance of a sum of runs over that of a sum of independent ones, at least 1.

    It is 1 plus twice the correlations of runs that are 1, 2, ... nights apart, up to the first
    that is not positive: of normal scores of the values less the median of their part. A step that
    is far larger than what is left of all parts is no offset of that kind: then it is 1.

    Args:
        values: All runs so far.
        ends: Where parts with a level of their own begin, two or more, and the number of runs.
        recent: Flags of the last year: each may be a sign of a dependence that few runs hide.
    """
    import numpy as np

    parts = [slice(*pair) for pair in itertools.pairwise(ends)]
    rest = np.array(values, dtype=np.float64)
    for part in parts:
        rest[part] -= np.median(rest[part])
    scores = _normal_scores(_ranks(rest))
    for part in parts:
        scores[part] -= scores[part].mean()
    squares, count = float((scores**2).sum()), len(scores)
    spread = math.sqrt(float((rest**2).sum()) / max(1, count - len(parts)))
    before, after = (np.median(np.asarray(values)[part]) for part in parts[-2:])
    long = parts[-2].stop - parts[-2].start >= FEWEST
    if not squares or (long and abs(after - before) > _CLEAR * spread):
        return 1.0
    products = np.correlate(scores, scores, "full")[count:]  # of runs 1, 2, ... nights apart
    correlations = products[: count // _LAGS] / squares

    def factor(bias: float) -> float:
        corrected = correlations + bias * len(parts) / count
        positive = int(np.logical_and.accumulate(corrected > 0).sum())
        return 1 + 2 * float(corrected[:positive].sum())

    first = factor(1.0 + recent)
    return max(1.0, first, factor((1.0 + recent) * first))


def threshold(level: float, nights: int) -> float:
    """Returns the threshold for the statistic of a night.

    Between the levels of the table the squares of the thresholds are interpolated over the
    logarithm of the level, in which they are nearly straight; below, the last line goes on.
    """
    column = 1 if nights <= SEASON else 2
    rows = [(-math.log(row[0]), row[column] ** 2) for row in _THRESHOLDS]
    wanted = -math.log(min(level, MOST))
    above = next((i for i in range(1, len(rows)) if rows[i][0] >= wanted), len(rows) - 1)
    (left, low), (right, high) = rows[above - 1], rows[above]
    return math.sqrt(low + (high - low) * (wanted - left) / (right - left))


def _ranks(values: Any) -> Any:
    """Returns the ranks of values, doubled: tied values share a multiple of one half."""
    import numpy as np
    from scipy.stats import rankdata

    return np.asarray(2 * rankdata(values), dtype=int)


def _add_rank(ranks: Any, values: Any) -> None:
    """Changes ranks to those with one value more, the last."""
    last, before = values[-1], values[:-1]
    above, below = before > last, before < last
    ranks[:-1] += 1 + above - below.astype(int)
    ranks[-1] = len(values) + 1 + int(below.sum()) - int(above.sum())


def _normal_scores(ranks: Any) -> Any:
    """Returns normal scores of those doubled ranks, less their mean."""
    scores = _quantiles(len(ranks))[ranks]
    return scores - scores.mean()


@functools.lru_cache(maxsize=512)
def _quantiles(count: int) -> Any:
    """Returns the normal quantile of each rank of `count` values, doubled ranks as the index."""
    import numpy as np
    from scipy.special import ndtri

    return ndtri(np.clip((np.arange(2 * count + 1) / 2 - 0.5) / count, 1e-9, 1 - 1e-9))
