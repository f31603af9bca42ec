"""Carry-over: an operation that takes longer, or less, after one of the other arm.

Operations that follow each other in one process are compared as if each stood alone. Where a
candidate slows the operation after it, most of that falls on the baseline, and the ratio of the
arms is not what a job pays that runs the candidate alone: its own time, and what each operation
costs the next one, together.

The arm of the slot before is therefore a second factor, next to the slot's own arm. Both follow
from the order of the arms, which was drawn, so that other orders give the chances of a coefficient;
what the slot's own arm explains is taken out first (D. Freedman and D. Lane, "A nonstochastic
interpretation of reported significance levels", J. Bus. Econ. Stat. 1 (1983) 292). The sum of both
coefficients is the log of what a job pays. The model: an after-effect multiplies the time of the
next operation, whichever arm that is of, and ends there.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Final, NamedTuple, Self

import numpy as np

from orbax_bench_core.config import BLOCK_SIZE, GateRule
from orbax_bench_core.gate.blocks import Blocks, Bools, Floats, random_labels
from orbax_bench_core.gate.noise import within_reach
from orbax_bench_core.gate.processes import ProcessTest, Spread

LEVEL: Final = 0.01
"""Of a point: its looks share it, and its primary operations."""

SUSPECTED: Final = 0.03
"""P-value up to which a word waits for the next look; the primary operations share it."""

_COVERED: Final = 0.98
"""Of the interval of the ratio: 1 % is beyond either end."""

_ANYTHING: Final = math.log(1000)
"""Reach of an interval of which nothing is known."""

_DRAWS: Final = 9999
_SEED: Final = 20_261_125

_TOLD_APART: Final = 1e-9
"""Square sum of a factor below which the order does not tell the two arms apart."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CarryOver:
    """What operations in turn say of those after the candidate, and of a job that runs it alone."""

    own: float  # log ratio of the arms as measured
    rest: Floats  # logs less that, about the median of their block, shape (blocks, slots)
    order: _Factors  # the factors of the order that was drawn
    drawn: _Drawn  # what random orders would say

    @classmethod
    def of(cls, blocks: Blocks, own: float) -> Self:
        """Fits both factors. Not to lives, whose operations follow others of their own arm."""
        logs = blocks.logs[:, :, 0]
        rest = logs - own * blocks.candidate
        # Few operations may tell the two factors apart; what is left of these then looks far off.
        rest, logs = (each - np.median(each, axis=1, keepdims=True) for each in (rest, logs))
        per_process = blocks.per_process or len(blocks)
        return cls(
            own=own,
            rest=within_reach(rest, logs),
            order=_Factors.of(blocks.candidate[None], per_process),
            drawn=_drawn(len(blocks), per_process),
        )

    def after_effect(self) -> AfterEffect:
        """Returns by how much an operation takes longer after the candidate."""
        found = float(self.order.after.of(self.rest)[0])
        unsure = float(self.order.after.spreads[0])
        sizes = np.abs(self.drawn.after.of(self.rest)) / self.drawn.after.spreads
        more = int(np.count_nonzero(sizes * unsure >= abs(found) * (1 - 1e-9)))
        reach = min(float(np.quantile(sizes, _COVERED)) * unsure, _ANYTHING)
        return AfterEffect(
            ratio=math.exp(found),
            p_value=(1 + more) / (_DRAWS + 1),
            low=math.exp(found - reach),
            high=math.exp(found + reach),
        )

    def job(self, spread: Spread) -> ProcessTest:
        """Returns the test of the log ratio that a job pays which runs the candidate alone."""
        explained, more = self.order.fitted(self.rest)
        left = (_centred(self.rest) - explained).ravel()
        tells = self.order.tells
        error, freedom = _ANYTHING, float(tells.sum()) - len(tells) - 2
        if freedom > 0:
            # The fit has taken two directions out of what is left.
            variance = float(left @ self.drawn.job @ left) * (freedom + 2) / freedom
            error = min(math.sqrt(variance) * float(self.order.job.spreads[0]), _ANYTHING)
        return ProcessTest.about(self.own + more, error, max(freedom, 1.0), spread)


class AfterEffect(NamedTuple):
    """By how much an operation takes longer after one of the candidate."""

    ratio: float
    p_value: float
    low: float  # lower end of the ratio, which is above the true one with a chance of 1 %
    high: float  # upper end, which is below the true one with that chance

    def matters(self, rule: GateRule) -> bool:
        """Returns whether it may bring an operation to the margin, even if it counts twice."""
        return max(self.high, 1 / self.low) ** 2 >= 1 + rule.margin


class _Coefficient(NamedTuple):
    """Least-squares coefficient of one factor, a row for each order."""

    weights: Floats  # of each operation, (orders, operations)
    spreads: Floats  # standard deviation of the coefficient, of values that have one of 1

    def of(self, values: Floats) -> Floats:
        """Returns the coefficient, by order."""
        return np.asarray(self.weights @ _centred(values).ravel())

    def covariance(self) -> Floats:
        """Returns how the weights over their spread vary together over all orders."""
        scaled = self.weights / self.spreads[:, None]
        return np.asarray(scaled.T @ scaled / len(scaled))


class _Factors(NamedTuple):
    """The own arm of each operation and that of the one before, for several orders."""

    own: Floats  # the own arm, of operations that tell, shape (orders, operations)
    before: Floats  # the arm before, less what the own arm explains, same shape
    explained: Floats  # how much of the arm before the own arm explains, by order
    after: _Coefficient  # the after-effect
    job: _Coefficient  # the own effect and the after-effect together
    tells: Floats  # 1 for each operation that tells, 0 for the first of a process

    @classmethod
    def of(cls, orders: Bools, per_process: int) -> Self:
        """Returns the factors of orders of shape (orders, blocks, slots)."""
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
        squares = (own**2).sum(axis=1)
        explained = (own * before).sum(axis=1) / squares
        before -= explained[:, None] * own
        # Where the arms alternate all the time nothing is left, and the deviation is large.
        left = (before**2).sum(axis=1)
        told_apart, left = left > _TOLD_APART, np.maximum(left, _TOLD_APART)
        weights = np.where(told_apart, 1 / left, 0.0)[:, None] * before
        # What the own arm seems to explain has in it what it explains of the arm before.
        sums = own / squares[:, None] + (1 - explained)[:, None] * weights
        spreads = np.sqrt(1 / squares + (1 - explained) ** 2 / left)
        after, job = _Coefficient(weights, left**-0.5), _Coefficient(sums, spreads)
        return cls(own, before, explained, after, job, tells)

    def fitted(self, values: Floats) -> tuple[Floats, float]:
        """Returns the part of first-order values that both factors explain, and the job's part."""
        after, job = float(self.after.of(values)[0]), float(self.job.of(values)[0])
        own = job - (1 - float(self.explained[0])) * after
        explained = own * self.own[0] + after * self.before[0]
        return explained.reshape(values.shape), job


class _Drawn(NamedTuple):
    """What random orders of the arms would say."""

    after: _Coefficient  # the after-effect
    job: Floats  # how the weights of what a job pays vary together, (operations, operations)


def _centred(values: Floats) -> Floats:
    return np.asarray(values - values.mean(axis=1, keepdims=True), dtype=np.float64)


@functools.lru_cache(maxsize=8)
def _drawn(blocks: int, per_process: int) -> _Drawn:
    rng = np.random.default_rng(_SEED)
    orders = random_labels(_DRAWS * blocks, rng).reshape(_DRAWS, blocks, BLOCK_SIZE)
    found = _Factors.of(orders, per_process)
    return _Drawn(found.after, found.job.covariance())
