"""Confidence in a point: how surely it is near the fastest.

The sum of the chances of single points stands for their joint chance, which is never more (Chen et
al., "Simulation budget allocation", Discrete Event Dynamic Systems 10 (2000) 251).
"""

from __future__ import annotations

import bisect
import dataclasses
import math
from typing import Final

import numpy as np

from orbax_bench_core.analysis.best.ranking import LEVEL, Floats

NEAR: Final = math.log(1.05)
"""Points within 5 % of the fastest are as good as it: the indifference zone, on the log scale."""

MOST_ROUNDS: Final = 100_000
"""More rounds than these are not counted."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Separation:
    """Chances of a point to be within 5 % of the fastest, and rounds that would settle it.

    Attributes:
        risk: Chance that another one is over 5 % faster, an upper bound; None where noise is
            unknown, with fewer than two rounds or two points.
        rounds: Rounds that were taken.
        needed: Rounds after which the risk is down at the level if the means stay where they are;
            None where noise is unknown, or more than `MOST_ROUNDS` are needed.
        noise: Standard deviation of one log value; None where it is unknown.
    """

    risk: float | None
    rounds: int
    needed: int | None
    noise: float | None

    @property
    def missing(self) -> int | None:
        """Rounds that are missing; 0 when enough were taken, None where nobody knows."""
        return None if self.needed is None else max(0, self.needed - self.rounds)


def separation(
    behind: Floats,
    chosen: int,
    logs: Floats,
    *,
    spread: Floats | None = None,
    level: float = LEVEL,
) -> Separation:
    """Returns how surely the chosen point is within 5 % of the fastest.

    The chance that point k is over 5 % faster is that of a normal deviate above
    (d_k + log 1.05) / (noise * spread_k / sqrt(rounds)), where d_k is how far its mean lies behind
    the chosen one. The risk is the sum over all points, which is at least the joint chance.

    Args:
        behind: d of each point, on the log scale; negative where it looks faster.
        chosen: Place of the chosen point.
        logs: Log values, shape (rounds, points).
        spread: Standard deviation of each d for noise 1 in one round; None for that of a
            difference of two means, sqrt(2).
        level: Risk at which it is sure enough.
    """
    rounds, points = logs.shape
    if rounds < 2 or points < 2:
        return Separation(risk=None, rounds=rounds, needed=None, noise=None)
    noise = noise_of(logs)
    others = np.arange(points) != chosen
    wide = np.full(points, math.sqrt(2.0)) if spread is None else spread
    ahead, unit = (behind + NEAR)[others], (noise * wide)[others]

    def risk(after: float) -> float:
        from scipy.special import stdtr

        df = (rounds - 1) * (points - 1)
        with np.errstate(divide="ignore"):
            return float(stdtr(df, -ahead / np.maximum(unit / math.sqrt(after), 1e-300)).sum())

    candidates = range(rounds, MOST_ROUNDS)
    place = bisect.bisect_left(candidates, True, key=lambda after: risk(after) <= level)
    return Separation(
        risk=min(1.0, risk(rounds)),
        rounds=rounds,
        needed=candidates[place] if place < len(candidates) else None,
        noise=noise,
    )


def noise_of(logs: Floats) -> float:
    """Returns the standard deviation of one log value, without what a round or a point adds.

    The residuals of rounds plus points have (rounds - 1) * (points - 1) degrees of freedom.

    Args:
        logs: Shape (rounds, points), two or more of each; of one point the noise is 0.
    """
    rounds, points = logs.shape
    if min(rounds, points) < 2:
        return 0.0
    rest = logs - logs.mean(axis=0) - logs.mean(axis=1, keepdims=True) + logs.mean()
    return float(np.sqrt((rest**2).sum() / ((rounds - 1) * (points - 1))))
