"""Formulas of checkpoint intervals and goodput.

`d` are the seconds that a save blocks, `B` those of its background part, `s` the share of speed
lost meanwhile, `R` the seconds of a recovery, `M` the mean seconds between failures, `tau` the
useful seconds between two saves. A save costs d' = d + s B.

Sources: J. W. Young, "A first order approximation to the optimum checkpoint interval" (1974);
J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps" (2006);
A. Saxena et al., arXiv:2410.18124, for the interval that is best for availability.
"""

from __future__ import annotations

import math


def waste(tau: float, d: float, mtbf: float, recovery: float, background: float, s: float) -> float:
    """Returns the seconds wasted for each useful one, to first order.

    A failure costs the recovery, half an interval, and the save under way: of one in the background
    that did not finish all is lost.
    """
    return (d + s * background) / tau + (recovery + tau / 2 + d + background) / mtbf


def goodput(wasted: float) -> float:
    """Returns the useful share of all time, from the seconds wasted for each useful one."""
    return 1 / (1 + wasted)


def young(cost: float, mtbf: float) -> float:
    """Returns the best interval to first order, sqrt(2 d' M)."""
    return math.sqrt(2 * cost * mtbf)


def daly(cost: float, mtbf: float) -> float:
    """Returns the best interval to higher order; that between failures where saves cost more."""
    if cost >= 2 * mtbf:
        return mtbf
    ratio = cost / (2 * mtbf)
    return math.sqrt(2 * cost * mtbf) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - cost


def availability_interval(cost: float, mtbf: float, recovery: float) -> float:
    """Returns the interval that is best for availability: T_s + sqrt(2 (T_f + T_r) T_s + T_s^2)."""
    return cost + math.sqrt(2 * (mtbf + recovery) * cost + cost**2)


def two_tier_waste(
    taus: tuple[float, float],
    costs: tuple[float, float],
    recoveries: tuple[float, float],
    share: float,
    mtbf: float,
) -> float:
    """Returns the seconds wasted for each useful one, with local saves and saves to storage."""
    found = 0.0
    for tau, cost, recovery, part in zip(taus, costs, recoveries, (share, 1 - share), strict=True):
        found += cost / tau + part * (tau / 2 + cost + recovery) / mtbf
    return found


def holds(tau: float, recovery: float, background: float, mtbf: float) -> bool:
    """Returns whether the first order holds to half a percent: a failure interrupts little."""
    return tau + recovery + background < mtbf / 4


def two_tier_intervals(
    costs: tuple[float, float], share: float, mtbf: float
) -> tuple[float, float]:
    """Returns the best intervals of local saves and of those to storage, to first order."""
    return young(costs[0], mtbf / share), young(costs[1], mtbf / (1 - share))
