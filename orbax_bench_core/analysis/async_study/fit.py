"""Fit of an async study: lines through blocked times, intervals of medians and ratios.

A blocking save takes a fixed time and writes its bytes at the speed of the storage. A save in the
background blocks for a fixed time too, and until its bytes are copied, at the speed of the copy. So
the share saved goes from what the fixed times leave to 1 less the ratio of both speeds.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.analysis.async_study.model import Fit, Line, Ratio, Seconds, Size

FEWEST_SIZES: Final = 3
"""Two sizes lie on a line whatever they are."""

NEAR: Final = 0.3
"""Relative distance of a median from its line up to which the line holds."""

_MISS: Final = 0.05

_MOST_COUNTED: Final = 60
"""Repeats of each kind up to which arrangements are counted; beyond, the count is normal."""


def fit_of(sizes: Sequence[Size]) -> Fit | None:
    """Returns the lines through the medians of the blocked times; None with too few sizes.

    The sizes must be at least `FEWEST_SIZES` and differ in bytes.
    """
    if len({size.num_bytes for size in sizes}) < FEWEST_SIZES:
        return None
    num_bytes = [size.num_bytes for size in sizes]
    blocking = line_through(num_bytes, [size.blocking.blocked for size in sizes])
    background = line_through(num_bytes, [size.background.blocked for size in sizes])
    limit = 1 - background.s_per_byte / blocking.s_per_byte if blocking.s_per_byte else None
    return Fit(
        blocking=blocking,
        background=background,
        limit=limit,
        holds=not blocking.flat
        and not background.flat
        and max(blocking.worst, background.worst) <= NEAR,
    )


def line_through(num_bytes: Sequence[int], times: Sequence[Seconds]) -> Line:
    """Returns the line with the least sum of squared relative distances to medians.

    Neither part is below 0. Distances are relative, because sizes span decades: absolute distances
    would fit the largest alone. Sizes must not all be equal, and times must be positive, one per
    size.
    """
    import numpy as np
    from scipy.optimize import nnls

    medians = np.asarray([seconds.median for seconds in times], dtype=np.float64)
    # In units of the largest size, so that both unknowns are of one magnitude.
    largest = max(num_bytes)
    sizes = np.asarray(num_bytes, dtype=np.float64) / largest
    design = np.stack([1 / medians, sizes / medians], axis=1)
    (fixed, growing), _ = nnls(design, np.ones(len(medians)))
    away = (fixed + growing * sizes) / medians - 1
    return Line(
        fixed_s=float(fixed),
        s_per_byte=float(growing) / largest,
        residual=math.sqrt(float(np.mean(away**2))),
        worst=float(np.abs(away).max()),
        flat=growing == 0
        or max(seconds.low for seconds in times) <= min(seconds.high for seconds in times),
    )


def seconds_of(times: Sequence[float]) -> Seconds:
    """Returns the median with its interval by order statistics.

    The k-th fastest and the k-th slowest of n repeats hold the median between them with probability
    1 - 2 P(B < k), with B binomial over n fair coins (W. J. Conover, "Practical Nonparametric
    Statistics", section 3.2). k is the largest for which that is at least 95 %; with fewer than 6
    repeats it is 1, and the probability less.
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
    the k-th smallest to the k-th largest (E. L. Lehmann, "Nonparametrics", section 2.6). All times
    must be positive.
    """
    ratios = sorted(time / other for time in above for other in below)
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
