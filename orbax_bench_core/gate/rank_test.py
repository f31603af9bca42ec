"""Aligned rank test of Hodges and Lehmann, with its level from our own randomisation.

The order of the arms in every block was drawn by us, uniformly from all arrangements. Under the
hypothesis that the candidate costs `exp(shift)` times the baseline, slot by slot, every other order
was as likely to give these very data: whatever the noise does (drifts, stalls, sticks in a slow
state), the p-value is exact.

Sources: J. L. Hodges and E. L. Lehmann, "Rank methods for combination of independent experiments in
analysis of variance", Ann. Math. Statist. 33 (1962) 482; the exact distribution by shifts: B.
Streitberg and J. Roehmel, "Exact distributions for permutation and rank tests", Statistical
Software Newsletter 12 (1986) 10.
"""

from __future__ import annotations

import functools
import itertools
from typing import Final

import numpy as np

from orbax_bench_core.gate.blocks import Blocks, Floats, Ints

EXACT_BLOCKS: Final = 60
"""Up to so many blocks all orders are counted; beyond, the time for it grows as their cube."""

DRAWS: Final = 1999

_TIE: Final = 10
"""Decimals of a log at which two aligned values are the same: the rounding of a logarithm must not
break a tie, and no clock resolves one part in ten thousand million."""


def p_values(
    blocks: Blocks, shift: float, *, draws: int = DRAWS, seed: int = 0
) -> tuple[float, float]:
    """Returns the p-values of both sides if the candidate costs `exp(shift)` times the baseline.

    Args:
        blocks: What was measured.
        shift: Log of the supposed ratio.
        draws: Random orders that stand in for all of them beyond `EXACT_BLOCKS` blocks.
        seed: Seed of those; no other number depends on it.

    Returns:
        Probability of a candidate at least this slow, and of one at least this fast.
    """
    ranks = doubled_ranks(blocks, shift)
    statistic = int(ranks[blocks.candidate].sum())
    sums = _sums(ranks, _arrangements(blocks))
    if len(blocks) > EXACT_BLOCKS:
        drawn = _drawn(sums, draws, seed)
        slow, fast = np.count_nonzero(drawn >= statistic), np.count_nonzero(drawn <= statistic)
        return (1 + slow) / (draws + 1), (1 + fast) / (draws + 1)
    chances, place = _distribution(sums, statistic)
    return min(1.0, float(chances[place:].sum())), min(1.0, float(chances[: place + 1].sum()))


def centred_statistic(blocks: Blocks, shift: float) -> int:
    """Returns twice the rank sum of the candidate, less what its order alone makes it on average.

    It never grows with the shift: shifting the candidate's logs down moves each of its aligned
    values down or leaves it, and those of the baseline up.
    """
    ranks = doubled_ranks(blocks, shift)
    slots = blocks.logs.shape[1]
    expected = ranks.sum() * (blocks.operations // len(blocks)) // slots
    return int(ranks[blocks.candidate].sum() - expected)


def doubled_ranks(blocks: Blocks, shift: float) -> Ints:
    """Returns twice the rank of each value among all, ties sharing the mean of theirs.

    Values are first shifted by the hypothesis and aligned by the median of their block. Doubled
    mid-ranks are whole numbers, so that sums of them are compared exactly.
    """
    shifted = blocks.logs - shift * blocks.candidate
    aligned = np.round(shifted - _medians(shifted), _TIE)
    ordered = np.sort(aligned, axis=None)
    below = np.searchsorted(ordered, aligned, side="left")
    not_above = np.searchsorted(ordered, aligned, side="right")
    return np.asarray(below + not_above + 1, dtype=np.int64)


def _medians(values: Floats) -> Floats:
    """Returns the median of each row, as a column; on short rows sorting beats `numpy.median`."""
    ordered = np.sort(values, axis=1)
    slots = values.shape[1]
    lower, upper = ordered[:, (slots - 1) // 2], ordered[:, slots // 2]
    return np.asarray((lower + upper)[:, None] / 2, dtype=np.float64)


def _arrangements(blocks: Blocks) -> Ints:
    slots = blocks.logs.shape[1]
    return _orders(slots, blocks.operations // len(blocks))


@functools.cache
def _orders(slots: int, chosen: int) -> Ints:
    """Returns the slots that the candidate can have in one block, one row per possibility."""
    return np.array(list(itertools.combinations(range(slots), chosen)), dtype=np.int64)


def _sums(ranks: Ints, orders: Ints) -> Ints:
    """Returns the doubled rank sum of the candidate by block and order."""
    return np.asarray(ranks[:, orders].sum(axis=2), dtype=np.int64)


def _distribution(sums: Ints, statistic: int) -> tuple[Floats, int]:
    """Returns the chance of each total over all blocks, and the place of the statistic among them.

    Blocks are independent, so the chances of their sum are those of each, shifted and added up.
    """
    lowest = sums.min(axis=1)
    offsets = sums - lowest[:, None]
    # Without ties all doubled ranks are even, and every other total is impossible.
    step = max(1, int(np.gcd.reduce(offsets, axis=None)))
    offsets //= step
    widths = offsets.max(axis=1)
    chances = np.ones(1)
    for block in np.argsort(widths, kind="stable").tolist():
        count = len(chances)
        wider = np.zeros(count + int(widths[block]))
        for offset in offsets[block].tolist():
            wider[offset : offset + count] += chances
        chances = wider / offsets.shape[1]
    return chances, (statistic - int(lowest.sum())) // step


def _drawn(sums: Ints, draws: int, seed: int) -> Ints:
    """Returns the totals of random orders."""
    rng = np.random.default_rng(seed)
    blocks, orders = sums.shape
    chosen = rng.integers(orders, size=(draws, blocks))
    return np.asarray(sums[np.arange(blocks), chosen].sum(axis=1), dtype=np.int64)
