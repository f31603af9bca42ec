"""Intervals of medians, ratios and means, as all answers give them."""

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Final, NamedTuple

MISS: Final = 0.05
"""Share of cases in which an interval may miss what it is of."""

_MOST_COUNTED: Final = 60
"""Values of each kind up to which arrangements are counted; beyond, the count is normal."""


class Interval(NamedTuple):
    """Ends of an interval, and the probability with which it holds what it is of."""

    low: float
    high: float
    coverage: float


def median_interval(values: Sequence[float]) -> Interval:
    """Returns order statistics that hold the median.

    The k-th smallest and the k-th largest of n values hold it between them with probability
    1 - 2 P(B < k), with B binomial over n fair coins (W. J. Conover, "Practical Nonparametric
    Statistics", section 3.2). k is the largest for which that is at least 95 %; with fewer than 6
    values it is 1, and the probability less.
    """
    ordered, n = sorted(values), len(values)
    below = list(itertools.accumulate(math.comb(n, i) / 2**n for i in range(n)))
    # below[k - 1] is P(B < k).
    k = max((k for k in range(1, n // 2 + 1) if 2 * below[k - 1] <= MISS), default=1)
    return Interval(ordered[k - 1], ordered[n - k], max(0.0, 1 - 2 * below[k - 1]))


def ratio_interval(
    above: Sequence[float], below: Sequence[float]
) -> tuple[float, float | None, float | None]:
    """Returns the ratio of some values to others, and its 95 % interval if they allow one.

    The estimate is the median of the ratios of all pairs. The interval holds the ratios that the
    rank test of Wilcoxon, Mann and Whitney does not reject at 2.5 % a side: the pairs' ratios from
    the k-th smallest to the k-th largest (E. L. Lehmann, "Nonparametrics", section 2.6). All values
    must be positive.
    """
    ratios = sorted(value / other for value in above for other in below)
    k = _rejected(len(above), len(below))
    return statistics.median(ratios), ratios[k - 1] if k else None, ratios[-k] if k else None


def _rejected(m: int, n: int) -> int:
    """Returns how many ratios on each side lie outside of the interval, plus one; 0 for none."""
    from orbax_bench_core.gate import arrangements

    if max(m, n) > _MOST_COUNTED:
        sigma = math.sqrt(m * n * (m + n + 1) / 12)
        z = statistics.NormalDist().inv_cdf(1 - MISS / 2)
        return max(0, math.floor(m * n / 2 - z * sigma))
    allowed = math.comb(m + n, m) * MISS / 2
    sums = itertools.accumulate(arrangements(m, n))
    return sum(1 for _ in itertools.takewhile(lambda count: count <= allowed, sums))
