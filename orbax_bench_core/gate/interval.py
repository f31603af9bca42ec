"""Hodges-Lehmann estimate of the ratio, and the interval that agrees with its verdict.

The estimate is the ratio at which the aligned rank statistic is what pure chance makes it on
average (J. L. Hodges and E. L. Lehmann, "Estimates of location based on rank tests", Ann. Math.
Statist. 34 (1963) 598). The interval holds the ratios that the verdict's own two tests do not
reject at the look that stopped the comparison, each at the level that it had there. The levels of
all looks sum to 6 %, so that by Bonferroni's inequality it covers the true ratio at least 94 times
in 100 whenever the data chose to stop; simulated it is 95 and more (see `perf.gate`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Blocks
from orbax_bench_core.gate.location import TimeTest
from orbax_bench_core.gate.looks import within
from orbax_bench_core.gate.noise import within_block_sigma
from orbax_bench_core.gate.power import standard_error
from orbax_bench_core.gate.rank_test import centred_statistics, tail

_PRECISION: Final = 1e-7
"""Of the log of the estimate; far below what any clock resolves."""

_AHEAD: Final = 4
_FEW_OPERATIONS: Final = 30
"""Halvings whose possible middles are looked at together, and up to how many operations per arm:
15 of few operations take hardly longer than one.
"""

_HALVINGS: Final = 8
"""Halvings of the bracket of an end. It begins about as wide as half the interval, so the end is
known to less than a hundredth of that.
"""


def log_ratio(blocks: Blocks) -> float:
    """Returns the log of the Hodges-Lehmann estimate: the middle of the shifts that balance."""
    limit = _widest(blocks)
    last_above = _crossing(blocks, limit, lambda statistic: statistic > 0)
    if centred_statistics(blocks, [last_above + _PRECISION])[0] < 0:
        return last_above  # the shifts that balance are narrower than the precision
    first_below = _crossing(blocks, limit, lambda statistic: statistic >= 0)
    return (last_above + first_below) / 2


def interval(
    blocks: Blocks, rule: GateRule, outcome: TimeTest, centre: float, *, seed: int = 0
) -> tuple[float | None, float | None]:
    """Returns the ends of the interval of the ratio.

    P-values need not fall steadily with the ratio, so an end that disagrees with the verdict is
    moved to the tolerance or the margin: the lower one is above the tolerance exactly when the
    verdict is REGRESSION, the upper one below the margin exactly when it is PASS. With a smallest
    slow-down in seconds the verdict is not on a ratio alone, and no end is moved.
    """
    step = 2 * standard_error(within_block_sigma(blocks), blocks.operations)

    def slow_enough(shift: float) -> bool:
        p_value = tail(blocks, shift, slow=True, draws=rule.draws, seed=seed)
        return not within(p_value, outcome.alpha)

    def fast_enough(shift: float) -> bool:
        p_value = tail(blocks, shift, slow=False, draws=rule.draws, seed=seed)
        return not within(p_value, outcome.pass_alpha)

    low = _end(blocks, centre, -step, slow_enough)
    high = _end(blocks, centre, step, fast_enough)
    if rule.min_effect_s > 0:
        return low, high
    tolerance, margin = 1 + rule.tolerance, 1 + rule.margin
    if outcome.word == "REGRESSION":
        low = max(low or 0.0, math.nextafter(tolerance, math.inf))
    elif low is not None:
        low = min(low, tolerance)
    if outcome.word == "PASS":
        high = min(math.inf if high is None else high, math.nextafter(margin, 0.0))
    elif high is not None:
        high = max(high, margin)
    return low, high


def _widest(blocks: Blocks) -> float:
    """Returns a shift beyond which one arm is ahead of the other in every block."""
    return float(np.ptp(blocks.logs, axis=(1, 2)).max()) + 1.0


def _crossing(blocks: Blocks, limit: float, holds: Callable[[int], bool]) -> float:
    """Returns the shift at which something ceases to hold of the falling statistic."""
    below, above = -limit, limit
    ahead = _AHEAD if blocks.operations <= _FEW_OPERATIONS else 1
    while above - below > _PRECISION:
        middles = _middles(below, above, ahead)
        statistics = centred_statistics(blocks, middles)
        place = 0
        while place < len(middles) and above - below > _PRECISION:
            held = holds(statistics[place])
            below, above = (middles[place], above) if held else (below, middles[place])
            place = 2 * place + (2 if held else 1)
    return (below + above) / 2


def _middles(below: float, above: float, ahead: int) -> list[float]:
    """Returns all middles that so many halvings of a bracket can meet, as a heap.

    The middle at place p is followed by that of its lower half at 2 p + 1, of its upper at 2 p + 2.
    """
    brackets, middles = [(below, above)], []
    for _ in range(ahead):
        inner = [(low + high) / 2 for low, high in brackets]
        middles += inner
        brackets = [
            half
            for (low, high), middle in zip(brackets, inner, strict=True)
            for half in ((low, middle), (middle, high))
        ]
    return middles


def _end(
    blocks: Blocks, centre: float, step: float, accepted: Callable[[float], bool]
) -> float | None:
    """Returns the first rejected ratio on one side of the estimate, or None where there is none."""
    limit = _widest(blocks)
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
    return math.exp(outside)
