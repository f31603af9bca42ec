"""Interval of a ratio that agrees with its verdict.

The interval holds the ratios that the verdict's own two tests do not reject at the look that
stopped the comparison, each at the level that it had there; where the arms share several processes,
also those that the test over processes does not reject; and where they share any, those that the
test of what a job pays does not reject, but below a REGRESSION, which is of the ratio as measured.
The levels of all looks sum to 6 %, so that by Bonferroni's inequality it covers the true ratio at
least 94 times in 100 whenever the data chose to stop; simulated it is 95 and more (see
`perf.gate`).
"""

import math
from collections.abc import Callable
from typing import Final

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Blocks
from orbax_bench_core.gate.location import TimeTest
from orbax_bench_core.gate.looks import within
from orbax_bench_core.gate.noise import within_block_sigma
from orbax_bench_core.gate.power import standard_error
from orbax_bench_core.gate.rank_test import PRECISION, tail, widest

_HALVINGS: Final = 8
"""Halvings of the bracket of an end. It begins about as wide as half the interval, so the end is
known to less than a hundredth of that.
"""


def interval(
    blocks: Blocks, rule: GateRule, outcome: TimeTest, *, seed: int = 0
) -> tuple[float | None, float | None]:
    """Returns the ends of the interval of the ratio; some operation of each arm has worked.

    P-values need not fall steadily with the ratio, so an end that disagrees with the verdict is
    moved to the tolerance or the margin: the lower one is above the tolerance exactly when the
    verdict is REGRESSION, the upper one below the margin exactly when it is PASS. With a smallest
    slow-down in seconds the verdict is not on a ratio alone, and no end is moved.

    Each end is the ratio at which the permutation test ceases to reject at the level of the look
    (inversion of a test), and no nearer than those of the t tests over processes and of a job.

    Args:
        blocks: Operations up to the look that ended the comparison.
        rule: Tolerance, margin, smallest slow-down and draws.
        outcome: Result of the tests at that look, with the levels that it had.
        seed: Seed of the orders of the arms that are drawn.

    Returns:
        Lower and upper end of candidate over baseline; None for an end that no ratio has.
    """
    centre = outcome.log_ratio(blocks)
    step = 2 * standard_error(within_block_sigma(blocks), blocks.operations)

    def slow_enough(shift: float) -> bool:
        p_value = tail(blocks, shift, slow=True, draws=rule.draws, seed=seed)
        return not within(p_value, outcome.alpha)

    def fast_enough(shift: float) -> bool:
        p_value = tail(blocks, shift, slow=False, draws=rule.draws, seed=seed)
        return not within(p_value, outcome.pass_alpha)

    low = _end(blocks, centre, -step, slow_enough)
    high = _end(blocks, centre, step, fast_enough)
    for test in filter(None, (outcome.processes, outcome.job)):
        below, above = map(test.reach, (outcome.alpha, outcome.pass_alpha))
        if low is not None and (test is outcome.processes or outcome.word != "REGRESSION"):
            low = min(low, math.exp(test.centre - below))
        high = None if high is None else max(high, math.exp(test.centre + above))
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


def _end(
    blocks: Blocks, centre: float, step: float, accepted: Callable[[float], bool]
) -> float | None:
    """Returns the first rejected ratio on one side of the estimate, or None where there is none."""
    limit = widest(blocks)
    step = math.copysign(max(abs(step), PRECISION), step)
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
