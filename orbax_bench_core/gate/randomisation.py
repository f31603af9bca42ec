"""Randomisation distribution of a sum over the candidate's slots, exact by convolution.

The order of the arms in every block was drawn by us, uniformly from all arrangements. If the arm
makes no difference to the scores of the slots, every other order was as likely to give these very
scores: whatever the noise does (drifts, stalls, sticks to a process), the chances are exact.

Source of the exact distribution by shifts: B. Streitberg and J. Roehmel, "Exact distributions for
permutation and rank tests", Statistical Software Newsletter 12 (1986) 10.
"""

import functools
import itertools
import math
from typing import Final

import numpy as np

from orbax_bench_core.gate.blocks import Bools, Floats, Ints

EXACT_BLOCKS: Final = 200
"""Up to so many blocks all orders are counted, in .05 s; the time for it grows as their cube."""

_LISTED_BLOCKS: Final = 8
"""Up to so many blocks all orders of half of them are listed: 1,296 of four."""

DRAWS: Final = 1999


def tails(
    scores: Ints, candidate: Bools, *, draws: int = DRAWS, seed: int = 0
) -> tuple[float, float]:
    """Returns the chances of a sum at least as large, and of one at least as small.

    Args:
        scores: One whole number per slot, shape (blocks, slots).
        candidate: Which slots are summed, same shape, equally many in every block.
        draws: Random orders that stand in for all of them beyond `EXACT_BLOCKS` blocks.
        seed: Seed of those; no other number depends on it.
    """
    statistic, sums = _sums(scores, candidate)
    if len(sums) > EXACT_BLOCKS:
        drawn = _drawn(sums, draws, seed)
        more, less = np.count_nonzero(drawn >= statistic), np.count_nonzero(drawn <= statistic)
        return (1 + more) / (draws + 1), (1 + less) / (draws + 1)
    chances, place = _distribution(sums, statistic)
    return min(1.0, float(chances[place:].sum())), min(1.0, float(chances[: place + 1].sum()))


def one_tail(
    scores: Ints, candidate: Bools, *, upper: bool, draws: int = DRAWS, seed: int = 0
) -> float:
    """Returns one of the chances of `tails`, and of few blocks by counting, in a fifth of the time.

    All orders of each half of the blocks are listed, and their sums matched. The last digits may
    differ from those of the convolution, which rounds.

    Args:
        scores: One whole number per slot, shape (blocks, slots).
        candidate: Which slots are summed, same shape, equally many in every block.
        upper: Whether the chance is that of a sum at least as large, or else at least as small.
        draws: Random orders that stand in for all of them beyond `EXACT_BLOCKS` blocks.
        seed: Seed of those.
    """
    statistic, sums = _sums(scores, candidate)
    blocks, orders = sums.shape
    if blocks > _LISTED_BLOCKS:
        return tails(scores, candidate, draws=draws, seed=seed)[0 if upper else 1]
    first, second = np.sort(_totals(sums[: blocks // 2])), _totals(sums[blocks // 2 :])
    below = np.searchsorted(first, statistic - second, side="left" if upper else "right")
    count, total = int(below.sum()), math.prod([int(orders)] * blocks)
    return (total - count if upper else count) / total


def _sums(scores: Ints, candidate: Bools) -> tuple[int, Ints]:
    """Returns the sum over the candidate, and the possible ones of each block."""
    return int(scores[candidate].sum()), possible_sums(scores, candidate)


def possible_sums(scores: Ints, candidate: Bools) -> Ints:
    """Returns the sums of the candidate's slots of each block, in all orders it could have."""
    blocks, slots = scores.shape
    orders = _orders(slots, int(candidate.sum()) // blocks)
    return np.asarray(scores[:, orders].sum(axis=2), dtype=np.int64)


def _totals(sums: Ints) -> Ints:
    """Returns the total of all blocks in every combination of their orders."""
    found = np.zeros(1, dtype=np.int64)
    for block in sums:
        found = np.add.outer(found, block).ravel()
    return found


@functools.cache
def _orders(slots: int, chosen: int) -> Ints:
    """Returns the slots that the candidate can have in one block, one row per possibility."""
    return np.array(list(itertools.combinations(range(slots), chosen)), dtype=np.int64)


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
