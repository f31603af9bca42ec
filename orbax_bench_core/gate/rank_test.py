"""Aligned rank test of Hodges and Lehmann, with its level from our own randomisation.

Ranks stay on operations, so that one stall is one rank; what is redrawn are slots. Where a slot is
the life of a worker with several operations, their ranks are summed, so that whatever sticks to a
process moves with its label.

Source: J. L. Hodges and E. L. Lehmann, "Rank methods for combination of independent experiments in
analysis of variance", Ann. Math. Statist. 33 (1962) 482.

The estimate is the ratio at which the aligned rank statistic is what pure chance makes it on
average (J. L. Hodges and E. L. Lehmann, "Estimates of location based on rank tests", Ann. Math.
Statist. 34 (1963) 598).
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from orbax_bench_core.gate.blocks import Blocks, Floats, Ints
from orbax_bench_core.gate.randomisation import DRAWS, one_tail, tails

_TIE: Final = 10
"""Decimals of a log at which two aligned values are the same: the rounding of a logarithm must not
break a tie, and no clock resolves one part in ten thousand million."""

PRECISION: Final = 1e-7
"""Of the log of the estimate; far below what any clock resolves."""

_AHEAD: Final = 4
_FEW_OPERATIONS: Final = 30
"""Halvings whose possible middles are looked at together, and up to how many operations per arm:
15 of few operations take hardly longer than one.
"""


def p_values(
    blocks: Blocks, shift: float, floor: float = 0.0, *, draws: int = DRAWS, seed: int = 0
) -> tuple[float, float]:
    """Returns the p-values of both sides if the candidate costs g(t) where the baseline costs t.

    The candidate's times are mapped back by g (`Blocks.as_baseline`), each block is aligned at its
    median, all are ranked together, and the ranks of the candidate are summed (J. L. Hodges and E.
    L. Lehmann, "Rank methods for combination of independent experiments in analysis of variance",
    Ann. Math. Statist. 33 (1962) 482).

    Args:
        blocks: Operations of both arms.
        shift: Natural log of the ratio that is supposed.
        floor: Seconds that the candidate is supposed to take longer at least; 0 for none.
        draws: Random orders of the arms, used only beyond `EXACT_BLOCKS` blocks.
        seed: Seed of those.

    Returns:
        The chance of a candidate that seems at least as slow, and of one at least as fast.
    """
    scores = doubled_ranks(blocks, shift, floor)
    return tails(scores, blocks.candidate, draws=draws, seed=seed)


def tail(blocks: Blocks, shift: float, *, slow: bool, draws: int = DRAWS, seed: int = 0) -> float:
    """Returns one of the p-values of `p_values`, faster, and different in its last digits.

    Args:
        blocks: Operations of both arms.
        shift: Natural log of the ratio that is supposed.
        slow: Whether that of a candidate at least as slow is wanted, or else at least as fast.
        draws: Random orders of the arms, used only beyond `EXACT_BLOCKS` blocks.
        seed: Seed of those.
    """
    scores = doubled_ranks(blocks, shift)
    return one_tail(scores, blocks.candidate, upper=slow, draws=draws, seed=seed)


def centred_statistics(blocks: Blocks, shifts: Sequence[float]) -> list[int]:
    """Returns twice the rank sum of the candidate, less what its order alone makes it on average.

    There is one number per shift. It never grows with the shift: shifting the candidate's logs down
    moves each of its aligned values down or leaves it, and those of the baseline up.

    It is the number of pairs of operations of both arms in which the candidate's is the slower one,
    less the number of those in which it is the faster one (H. B. Mann and D. R. Whitney, "On a test
    of whether one of two random variables is stochastically larger than the other", Ann. Math.
    Statist. 18 (1947) 50), which needs no sorting.
    """
    labels = blocks.labels.reshape(len(blocks), -1)
    flat = blocks.logs.reshape(labels.shape) - np.array(shifts)[:, None, None] * labels
    aligned = np.round(flat - _medians(flat), _TIE)
    slower, faster = aligned[:, labels][:, :, None], aligned[:, ~labels][:, None, :]
    above = np.count_nonzero(slower > faster, axis=(1, 2))
    below = np.count_nonzero(slower < faster, axis=(1, 2))
    found: list[int] = (above - below).tolist()
    return found


def log_ratio(blocks: Blocks) -> float:
    """Returns the log of the Hodges-Lehmann estimate: the middle of the shifts that balance."""
    limit = widest(blocks)
    last_above = _crossing(blocks, limit, lambda statistic: statistic > 0)
    if centred_statistics(blocks, [last_above + PRECISION])[0] < 0:
        return last_above  # the shifts that balance are narrower than the precision
    first_below = _crossing(blocks, limit, lambda statistic: statistic >= 0)
    return (last_above + first_below) / 2


def widest(blocks: Blocks) -> float:
    """Returns a shift beyond which one arm is ahead of the other in every block."""
    return float(np.ptp(blocks.logs, axis=(1, 2)).max()) + 1.0


def _crossing(blocks: Blocks, limit: float, holds: Callable[[int], bool]) -> float:
    """Returns the shift at which something ceases to hold of the falling statistic."""
    below, above = -limit, limit
    ahead = _AHEAD if blocks.operations <= _FEW_OPERATIONS else 1
    while above - below > PRECISION:
        middles = _middles(below, above, ahead)
        statistics = centred_statistics(blocks, middles)
        place = 0
        while place < len(middles) and above - below > PRECISION:
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


def doubled_ranks(blocks: Blocks, shift: float, floor: float = 0.0) -> Ints:
    """Returns twice the sum of the ranks of each slot, shape (blocks, slots).

    Values are first freed from the supposed slow-down and aligned by the median of their block;
    ties share the mean of their ranks. Doubled mid-ranks are whole numbers, so that sums of them
    are compared exactly.
    """
    values = blocks.as_baseline(shift, floor)
    flat = values.reshape(len(blocks), -1)
    aligned = np.round(flat - _medians(flat), _TIE)
    ordered = np.sort(aligned, axis=None)
    below = np.searchsorted(ordered, aligned, side="left")
    not_above = np.searchsorted(ordered, aligned, side="right")
    ranks = (below + not_above + 1).reshape(values.shape)
    return np.asarray(ranks.sum(axis=2), dtype=np.int64)


def _medians(values: Floats) -> Floats:
    """Returns the medians along the last axis; on short rows sorting beats `numpy.median`."""
    ordered = np.sort(values, axis=-1)
    length = values.shape[-1]
    lower, upper = ordered[..., (length - 1) // 2], ordered[..., length // 2]
    return np.asarray((lower + upper)[..., None] / 2, dtype=np.float64)
