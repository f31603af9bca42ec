"""Hodges-Lehmann estimate of the ratio, and its 95 % confidence interval.

The estimate is the ratio at which the aligned rank statistic is what pure chance makes it on
average (J. L. Hodges and E. L. Lehmann, "Estimates of location based on rank tests", Ann. Math.
Statist. 34 (1963) 598). The 95 % interval holds the ratios that the two-sided test, at 2.5 % a
side, does not reject; it is as exact as the test.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Final

import numpy as np

from orbax_bench_core.gate.blocks import Blocks
from orbax_bench_core.gate.noise import standard_error, within_block_sigma
from orbax_bench_core.gate.rank_test import DRAWS, centred_statistic, p_values

SIDE: Final = 0.025
"""Error on each side of a 95 % interval."""

_PRECISION: Final = 1e-7
"""Of the log of the estimate; far below what any clock resolves."""

_HALVINGS: Final = 8
"""Halvings of the bracket of an end. It begins about as wide as half the interval, so the end is
known to less than a hundredth of that.
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The ratio of candidate to baseline.

    Attributes:
        ratio: Hodges-Lehmann estimate; above 1 is worse.
        low: Lower end of the 95 % interval; None where the blocks are too few to have one: with two
            of them even the most one-sided order comes about by chance in 1 of 36 cases, so no
            ratio can be ruled out.
        high: Upper end of it, likewise.
    """

    ratio: float
    low: float | None
    high: float | None


def estimate(blocks: Blocks, *, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """Returns the ratio and its 95 % interval.

    Args:
        blocks: What was measured.
        draws: Random orders that stand in for all where there are too many blocks to count them.
        seed: Seed of those.
    """
    centre = log_ratio(blocks)
    step = 2 * standard_error(within_block_sigma(blocks), blocks.operations)

    def slow_enough(shift: float) -> bool:
        return p_values(blocks, shift, draws=draws, seed=seed)[0] > SIDE

    def fast_enough(shift: float) -> bool:
        return p_values(blocks, shift, draws=draws, seed=seed)[1] > SIDE

    limit = _widest(blocks)
    low = _end(centre, -step, limit, slow_enough)
    high = _end(centre, step, limit, fast_enough)
    return Estimate(
        ratio=math.exp(centre),
        low=None if low is None else math.exp(low),
        high=None if high is None else math.exp(high),
    )


def log_ratio(blocks: Blocks) -> float:
    """Returns the log of the Hodges-Lehmann estimate: the middle of the shifts that balance."""
    limit = _widest(blocks)
    last_above = _crossing(blocks, limit, lambda statistic: statistic > 0)
    first_below = _crossing(blocks, limit, lambda statistic: statistic >= 0)
    return (last_above + first_below) / 2


def _widest(blocks: Blocks) -> float:
    """Returns a shift beyond which one arm is ahead of the other in every block."""
    return float(np.ptp(blocks.logs, axis=1).max()) + 1.0


def _crossing(blocks: Blocks, limit: float, holds: Callable[[int], bool]) -> float:
    """Returns the shift at which something ceases to hold of the falling statistic."""
    below, above = -limit, limit
    while above - below > _PRECISION:
        middle = (below + above) / 2
        if holds(centred_statistic(blocks, middle)):
            below = middle
        else:
            above = middle
    return (below + above) / 2


def _end(
    centre: float, step: float, limit: float, accepted: Callable[[float], bool]
) -> float | None:
    """Returns the first rejected shift on one side of the estimate, or None where there is none."""
    step = math.copysign(max(abs(step), _PRECISION), step)
    inside, outside = centre, centre + step
    while accepted(outside):
        if abs(outside - centre) > 2 * limit:
            return None
        inside, outside, step = outside, outside + 2 * step, 2 * step
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if accepted(middle):
            inside = middle
        else:
            outside = middle
    return outside
