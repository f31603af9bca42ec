"""Carry-over: an operation that takes longer, or less, after one of the other arm.

Operations that follow each other in one process are compared as if each stood alone. Where a
candidate slows the operation after it, half of that falls on the baseline, and the ratio of the
arms is not what a job pays that runs the candidate alone.

The arm of the slot before is a factor beside the slot's own arm. Both follow from the order of the
arms, which was drawn, so that other orders give the chances of its coefficient; what the slot's own
arm explains is taken out first (D. Freedman and D. Lane, "A nonstochastic interpretation of
reported significance levels", J. Bus. Econ. Stat. 1 (1983) 292).
"""

import functools
import math
from typing import Final, NamedTuple, Self

import numpy as np

from orbax_bench_core.config import BLOCK_SIZE, GateRule
from orbax_bench_core.gate.blocks import Blocks, Bools, Floats, random_labels
from orbax_bench_core.gate.noise import within_reach
from orbax_bench_core.gate.rank_test import log_ratio
from orbax_bench_core.gate.verdict import Verdict, Word

LEVEL: Final = 0.01
"""Of a point: its looks share it, and its primary operations."""

SUSPECTED: Final = 0.03
"""P-value up to which a word waits for the next look; the primary operations share it."""

_EXCLUDED: Final = 1.4
"""A PASS has ruled out that an operation takes so many times as long after the candidate, or so
many as the margin allows where that is more."""

_COVERED: Final = 0.98
"""Of the interval of the ratio: 1 % is beyond either end."""

_ANYTHING: Final = math.log(1000)
"""Reach of an interval of which nothing is known."""

_DRAWS: Final = 9999
_SEED: Final = 20_261_125

_TOLD_APART: Final = 1e-9
"""Square sum of a factor below which the order does not tell the two arms apart."""


class CarryOver(NamedTuple):
    """By how much an operation takes longer after one of the candidate."""

    ratio: float
    p_value: float
    low: float  # lower end of the ratio, which is above the true one with a chance of 1 %
    high: float  # upper end, which is below the true one with that chance

    def contradicts(self, word: Word, verdict: Verdict, rule: GateRule, chance: float) -> bool:
        """Returns whether a job that runs the candidate alone may pay other than the word says.

        It pays the ratio of the arms times this one. Where this is above 1, the ratio of the arms
        as measured is too low by an unknown part of it, at most by all of it. A PASS is spared
        where no after-effect is suspected, with that chance of error, nor could be a large one.
        """
        if word == "REGRESSION":
            if verdict.low is None or verdict.endpoint != "time":
                return True
            return verdict.low * min(1.0, self.low) <= 1 + rule.tolerance
        if word == "INCONCLUSIVE":
            return max(self.high, 1 / self.low) ** 2 >= 1 + rule.margin
        if self.p_value > chance and self.high <= _excluded(rule):
            return False
        high = math.inf if verdict.high is None else verdict.high
        return high * max(1.0, self.high) ** 2 >= 1 + rule.margin

    def said(self, chance: float, rule: GateRule) -> str:
        """Returns what keeps a word from being given, and what to do."""
        seen = (
            f"an operation takes {self.ratio:.3g}x as long after one of the candidate as after one "
            f"of the baseline (p = {self.p_value:.2g})"
        )
        if self.p_value > chance:
            most = f"up to {self.high:.3g}x" if self.high < 10 else "many times"
            seen = (
                f"an operation after one of the candidate may take {most} as long as after one of "
                f"the baseline, and {_excluded(rule):g}x has to be excluded"
            )
        return (
            f"{seen}, so operations in turn do not show what a job pays that runs the candidate "
            "alone: that takes processes of their own for the arms (`gate.lives: always`)"
        )


def _excluded(rule: GateRule) -> float:
    return max(_EXCLUDED, 1 + rule.margin)


def carry_over(blocks: Blocks) -> CarryOver:
    """Returns by how much an operation takes longer after the candidate.

    Not of lives, whose operations follow others of their own arm.
    """
    logs = blocks.logs[:, :, 0]
    rest = logs - log_ratio(blocks) * blocks.candidate
    # Few operations may tell the two factors apart, and what is left of these then looks far off.
    rest, logs = (each - np.median(each, axis=1, keepdims=True) for each in (rest, logs))
    rest = within_reach(rest, logs)
    per_process = blocks.per_process or len(blocks)
    order = _Factor.of(blocks.candidate[None], per_process)
    drawn = _drawn(len(blocks), per_process)
    found, unsure = float(order.coefficients(rest)[0]), float(order.spreads[0])
    sizes = np.abs(drawn.coefficients(rest)) / drawn.spreads
    more = int(np.count_nonzero(sizes * unsure >= abs(found) * (1 - 1e-9)))
    reach = min(float(np.quantile(sizes, _COVERED)) * unsure, _ANYTHING)
    return CarryOver(
        ratio=math.exp(found),
        p_value=(1 + more) / (_DRAWS + 1),
        low=math.exp(found - reach),
        high=math.exp(found + reach),
    )


class _Factor(NamedTuple):
    """The arm of the operation before, less what the own arm explains, a row for each order."""

    weights: Floats  # of each operation in the least-squares coefficient, (orders, operations)
    spreads: Floats  # standard deviation of the coefficient, of values that have one of 1

    @classmethod
    def of(cls, orders: Bools, per_process: int) -> Self:
        """Returns the factor of orders of shape (orders, blocks, slots)."""
        own: Floats = np.asarray(orders - 0.5, dtype=np.float64)
        before: Floats = np.zeros(own.shape)
        before[:, :, 1:] = own[:, :, :-1]
        before[:, 1:, 0] = own[:, :-1, -1]
        # The first operation of a process has none before it, and tells nothing.
        tells = np.ones(own.shape[1:])
        tells[::per_process, 0] = 0.0
        said = tells.sum(axis=1)[:, None]
        own, before = (
            (tells * (each - (each * tells).sum(axis=2, keepdims=True) / said)).reshape(
                len(own), -1
            )
            for each in (own, before)
        )
        explained = (own * before).sum(axis=1) / (own**2).sum(axis=1)
        before -= explained[:, None] * own
        # Where the arms alternate all the time nothing is left, and the deviation is large.
        left = (before**2).sum(axis=1, keepdims=True)
        told_apart = left > _TOLD_APART
        weights = np.where(told_apart, before, 0.0) / np.maximum(left, _TOLD_APART)
        return cls(weights, np.maximum(left[:, 0], _TOLD_APART) ** -0.5)

    def coefficients(self, values: Floats) -> Floats:
        """Returns the least-squares coefficient of the arm before, by order."""
        seen = (values - values.mean(axis=1, keepdims=True)).ravel()
        return np.asarray(self.weights @ seen)


@functools.lru_cache(maxsize=8)
def _drawn(blocks: int, per_process: int) -> _Factor:
    """Returns the factor of random orders of the arms."""
    rng = np.random.default_rng(_SEED)
    orders = random_labels(_DRAWS * blocks, rng).reshape(_DRAWS, blocks, BLOCK_SIZE)
    return _Factor.of(orders, per_process)
