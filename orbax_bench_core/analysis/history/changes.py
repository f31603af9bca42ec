"""Change-point detection over past runs, by penalized segmentation of ranks.

The series is cut where the sum of squares about the means of its parts, plus a penalty for each
cut, is least (PELT: R. Killick, P. Fearnhead, I. A. Eckley, "Optimal detection of changepoints with
a linear computational cost", J. Am. Stat. Assoc. 107 (2012) 1590). The penalty is what keeps random
orders of the series in one piece, all but a chosen share of them, so that the level is exact for
exchangeable values of any distribution. Values count by the normal scores of their ranks: one wild
run is no more than one run, and what random orders give depends on the length alone. Each part is
searched again by itself, as in E-divisive (D. S. Matteson and N. A. James, "A nonparametric
approach for multiple change point analysis of multivariate data", J. Am. Stat. Assoc. 109 (2014)
334).
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

FEWEST: Final = 10
"""Below ten runs even the clearest step comes about by chance too often to be called a change."""

SIGNIFICANCE: Final = 0.01
"""Share of series without any change in which one may be found."""

_SMALLEST_PART: Final = 2
_ORDERS: Final = 999
LEAST: Final = 1 / (_ORDERS + 1)
MOST: Final = 0.1
_MOST_CUTS: Final = 3
"""Cuts that random orders are searched with: the more there are, the less each of them gains."""
_NEVER_WORTH: Final = 4.0
"""More than a tenth of random orders of any length gain this, so that it needs no look at them."""
_SEED: Final = 20_260_302
_DECIMALS: Final = 9
"""Equal gains differ in the last digits by the order of summation."""


@dataclasses.dataclass(frozen=True, slots=True)
class ChangePoint:
    """Change point of a series.

    Attributes:
        index: Index of the first value after the change.
        p_value: Share of random orders in which the best cuts gain as much each as this one does.
    """

    index: int
    p_value: float


def change_points(
    values: Sequence[float], *, significance: float = SIGNIFICANCE
) -> list[ChangePoint]:
    """Returns where a series has changed, in order.

    Without a change the values must be exchangeable: independent, or nearly so. Log ratios to a
    reference that was measured at the same time are; raw seconds, which wander from day to day, are
    not, and would be found to change all the time.

    Args:
        values: The series in the order of time. Fewer than ten values have no change points.
        significance: Share of series without any change in which one may be found.

    Raises:
        ValueError: If the significance is below what random orders can tell, or above 10 %.
    """
    if not LEAST <= significance <= MOST:
        raise ValueError(f"significance is {significance:g}; give one from {LEAST:g} to {MOST:g}")
    return _search(list(values), 0, significance)


def _search(values: list[float], start: int, significance: float) -> list[ChangePoint]:
    """Returns the change points of a part of a series that begins at `start`."""
    found = _cuts(values, significance)
    if not found:
        return []
    # Among themselves the values of a part have other ranks, which show smaller steps.
    ends = [0, *(cut.index for cut in found), len(values)]
    inside = [
        change
        for begin, end in itertools.pairwise(ends)
        for change in _search(values[begin:end], start + begin, significance)
    ]
    here = [dataclasses.replace(cut, index=start + cut.index) for cut in found]
    return sorted([*here, *inside], key=lambda change: change.index)


def _cuts(values: Sequence[float], significance: float) -> list[ChangePoint]:
    """Returns the cuts of the segmentation that is worth its cuts."""
    if len(values) < FEWEST:
        return []
    scores = _normal_scores(values)
    if _largest_gain(scores) < _NEVER_WORTH:
        return []
    by_chance = _gains_by_chance(_round_length(len(values)))
    # The p-value of a gain above the penalty is at most the significance.
    penalty = by_chance[len(by_chance) - int(significance * (_ORDERS + 1))]
    ends = [int(end) for end in _segmentation(scores).predict(pen=penalty)]
    found = []
    for start, cut, end in _neighbours([0, *ends]):
        gain = _squares(scores[start:end]) - _squares(scores[start:cut]) - _squares(scores[cut:end])
        above = len(by_chance) - bisect.bisect_left(by_chance, round(float(gain), _DECIMALS))
        found.append(ChangePoint(index=cut, p_value=(1 + above) / (_ORDERS + 1)))
    return found


def _neighbours(ends: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yields start, cut and end of each two parts that meet."""
    yield from zip(ends, ends[1:], ends[2:], strict=False)


def _normal_scores(values: Sequence[float]) -> Any:
    """Returns what values of those ranks would be in a normal sample."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    return ndtri((rankdata(values) - 0.5) / len(values))


def _segmentation(scores: Any) -> Any:
    """Returns the search for the cuts that leave the least sum of squares."""
    import ruptures

    return ruptures.KernelCPD(kernel="linear", min_size=_SMALLEST_PART).fit(scores)


def _round_length(length: int) -> int:
    """Returns a length that stands in for those a little below, so that few have to be looked at.

    The gains of chance grow with the length, so this errs on the side of finding less.
    """
    step = 1 << max(0, length.bit_length() - 5)
    return -(-length // step) * step


@functools.cache
def _gains_by_chance(length: int) -> list[float]:
    """Returns the penalty per cut that keeps each random order in one piece, ascending."""
    import numpy as np

    random, scores = np.random.default_rng(_SEED), _normal_scores(range(length))
    return sorted(_largest_gain(random.permutation(scores)) for _ in range(_ORDERS))


def _largest_gain(scores: Any) -> float:
    """Returns the most that any number of cuts gain each."""
    search, whole = _segmentation(scores), _squares(scores)
    gains = []
    for cuts in range(1, min(_MOST_CUTS, len(scores) // _SMALLEST_PART - 1) + 1):
        ends = search.predict(n_bkps=cuts)
        parts = itertools.pairwise([0, *ends])
        gains.append((whole - sum(_squares(scores[start:end]) for start, end in parts)) / cuts)
    return round(float(max(gains)), _DECIMALS)


def _squares(scores: Any) -> Any:
    """Returns the sum of squares about the mean."""
    return (scores * scores).sum() - scores.sum() ** 2 / len(scores)
