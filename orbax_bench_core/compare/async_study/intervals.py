"""Intervals of medians and of ratios that assume nothing of the noise but independence."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.compare.async_study.model import Ratio, Seconds

_MISS: Final = 0.05
_MOST_COUNTED: Final = 60
"""Repeats of each kind up to which arrangements are counted; beyond, the count is normal."""


def seconds_of(times: Sequence[float]) -> Seconds:
    """Returns the median with its interval by order statistics.

    The k-th fastest and the k-th slowest of n repeats hold the median between them with probability
    1 - 2 P(B < k), with B binomial over n fair coins (W. J. Conover, "Practical Nonparametric
    Statistics", section 3.2). k is the largest for which that is at least 95 %; with fewer than 6
    repeats it is 1, and the probability less.

    Args:
        times: Seconds of the repeats, at least one.
    """
    ordered, n = sorted(times), len(times)
    below = list(itertools.accumulate(math.comb(n, i) / 2**n for i in range(n)))
    # below[k - 1] is P(B < k).
    k = max((k for k in range(1, n // 2 + 1) if 2 * below[k - 1] <= _MISS), default=1)
    return Seconds(
        n=n,
        median=statistics.median(ordered),
        low=ordered[k - 1],
        high=ordered[n - k],
        coverage=max(0.0, 1 - 2 * below[k - 1]),
    )


def ratio_of(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Returns the ratio of one kind of repeats to another, with its 95 % interval.

    The estimate is the median of the ratios of all pairs. The interval holds the ratios that the
    rank test of Wilcoxon, Mann and Whitney does not reject at 2.5 % a side: the pairs' ratios from
    the k-th smallest to the k-th largest (E. L. Lehmann, "Nonparametrics", section 2.6).

    Args:
        above: Positive times, over which the others are.
        below: Positive times.
    """
    ratios = sorted(one / other for one in above for other in below)
    k = _rejected(len(above), len(below))
    return Ratio(
        value=statistics.median(ratios),
        low=ratios[k - 1] if k else None,
        high=ratios[-k] if k else None,
    )


def _rejected(m: int, n: int) -> int:
    """Returns how many ratios on each side lie outside of the interval, plus one; 0 for none."""
    if max(m, n) > _MOST_COUNTED:
        sigma = math.sqrt(m * n * (m + n + 1) / 12)
        z = statistics.NormalDist().inv_cdf(1 - _MISS / 2)
        return max(0, math.floor(m * n / 2 - z * sigma))
    allowed = math.comb(m + n, m) * _MISS / 2
    sums = itertools.accumulate(_arrangements(m, n))
    return sum(1 for _ in itertools.takewhile(lambda count: count <= allowed, sums))


def _arrangements(m: int, n: int) -> list[int]:
    """Returns how many orders of both kinds give each value of the Mann-Whitney statistic.

    They are the coefficients of the Gaussian binomial: the product over i of
    (1 - x^(n + i)) / (1 - x^i), i from 1 to m.
    """
    counts = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for place in range(m * n, n + i - 1, -1):
            counts[place] -= counts[place - n - i]
        for place in range(i, m * n + 1):
            counts[place] += counts[place - i]
    return counts
