"""Confidence in a point: how surely it is near the fastest.

The sum of the chances of single points stands for their joint chance, which is never more (Chen et
al., "Simulation budget allocation", Discrete Event Dynamic Systems 10 (2000) 251).
"""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from orbax_bench_core.analysis.best.factorial import Contrast, Factorial, FactorialLayout, analyse
from orbax_bench_core.analysis.best.model import Effects, FittedPlace, Goal, OptionContrast
from orbax_bench_core.analysis.best.observations import Observed, Values, acts_on, choices
from orbax_bench_core.analysis.best.ranking import LEVEL, Floats, complete_rounds

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


_MOST_POINTS: Final = 5000
"""A case with more points than these is not fitted: nobody reads it, and it would take minutes."""


def factorial_of(
    points: Sequence[Observed], values: Values, varied: Mapping[str, tuple[Any, ...]]
) -> tuple[Factorial, tuple[int, ...]]:
    """Returns the factorial analysis of measured points, and the rounds that all of them have."""
    logs, rounds = complete_rounds(values, [point.point.id for point in points])
    if len(points) > _MOST_POINTS:
        said = f"with more than {_MOST_POINTS} points effects are not computed"
        return Factorial(unknown=(said,), fit_unknown=said), rounds
    rows = tuple(
        tuple(levels.index(choices(point.point).get(name)) for name, levels in varied.items())
        for point in points
    )
    # Of options that failed everywhere with one value, only the values that are left count.
    layout = _present(FactorialLayout(levels=dict(varied), rows=rows))
    return analyse(layout, logs), rounds


def _present(layout: FactorialLayout) -> FactorialLayout:
    """Returns a layout without values that no point has, and without options that do not vary."""
    names = list(layout.levels)
    used = [sorted({row[place] for row in layout.rows}) for place in range(len(names))]
    kept = [place for place in range(len(names)) if len(used[place]) > 1]
    return FactorialLayout(
        levels={
            names[place]: tuple(layout.levels[names[place]][level] for level in used[place])
            for place in kept
        },
        rows=tuple(tuple(used[place].index(row[place]) for place in kept) for row in layout.rows),
    )


def effects_of(
    goal: Goal,
    factorial: Factorial,
    rounds: Sequence[int],
    points: Sequence[Observed],
    *,
    whole: bool,
) -> Effects:
    """Returns effects and fit of a factorial analysis."""
    fit = factorial.fit
    fitted: list[FittedPlace] = []
    why = factorial.fit_unknown
    if fit is not None:
        pairs = zip((point.point.id for point in points), fit.means, strict=True)
        fitted = [
            FittedPlace(point_id=id_, value=math.exp(mean))
            for id_, mean in sorted(pairs, key=lambda pair: float(pair[1]))
        ]
        if not fit.holds:
            why = (
                "more than main effects and pairs is at work (lack of fit, "
                f"p = {fit.lack_of_fit:.2g}): the means count"
            )
        elif not whole:
            why = "not every point was measured in every round: the means count"
    return Effects(
        goal=goal,
        rounds=len(rounds),
        main=tuple(_kept(each) for each in factorial.effects if _acts(each, goal)),
        interactions=tuple(_kept(each) for each in factorial.interactions if _acts(each, goal)),
        unknown=factorial.unknown,
        fitted=tuple(fitted),
        lack_of_fit=None if fit is None else fit.lack_of_fit,
        used=fit is not None and not why,
        why=why,
    )


def _acts(contrast: Contrast, goal: Goal) -> bool:
    """Returns whether what a contrast shows may be more than chance."""
    return all(acts_on(name, goal) for name in contrast.options)


def _kept(contrast: Contrast) -> OptionContrast:
    return OptionContrast(
        options=contrast.options,
        values=contrast.values,
        against=contrast.against,
        ratio=contrast.ratio,
        low=contrast.low,
        high=contrast.high,
        matters=contrast.matters,
    )
