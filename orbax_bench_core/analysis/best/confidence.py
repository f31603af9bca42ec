"""Confidence in a point: how surely it is near the fastest.

The sum of the chances of single points stands for their joint chance, which is never more (Chen et
al., "Simulation budget allocation", Discrete Event Dynamic Systems 10 (2000) 251).
"""

import bisect
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from orbax_bench_core.analysis.best.factorial import Factorial, FactorialLayout, analyse
from orbax_bench_core.analysis.best.model import Confidence, Effects, FittedPlace, Goal
from orbax_bench_core.analysis.best.observations import Observed, Values, acts_on, choices
from orbax_bench_core.analysis.best.ranking import LEVEL, Floats, complete_rounds

NEAR: Final = math.log(1.05)
"""Points within 5 % of the fastest are as good as it: the indifference zone, on the log scale."""

MOST_ROUNDS: Final = 100_000
"""More rounds than these are not counted."""


def separation(
    behind: Floats, chosen: int, logs: Floats, *, spread: Floats | None = None
) -> Confidence:
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
    """
    rounds, points = logs.shape
    if rounds < 2 or points < 2:
        return Confidence(risk=None, rounds=rounds, missing=None, noise=None)
    # The residuals of rounds plus points, without what a round or a point adds.
    rest = logs - logs.mean(axis=0) - logs.mean(axis=1, keepdims=True) + logs.mean()
    df = (rounds - 1) * (points - 1)
    noise = float(np.sqrt((rest**2).sum() / df))
    others = np.arange(points) != chosen
    wide = np.full(points, math.sqrt(2.0)) if spread is None else spread
    ahead, unit = (behind + NEAR)[others], (noise * wide)[others]

    def risk(after: float) -> float:
        from scipy.special import stdtr

        with np.errstate(divide="ignore"):
            return float(stdtr(df, -ahead / np.maximum(unit / math.sqrt(after), 1e-300)).sum())

    candidates = range(rounds, MOST_ROUNDS)
    place = bisect.bisect_left(candidates, True, key=lambda after: risk(after) <= LEVEL)
    return Confidence(
        risk=min(1.0, risk(rounds)),
        rounds=rounds,
        missing=candidates[place] - rounds if place < len(candidates) else None,
        noise=noise,
    )


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
        # What an option shows that cannot act on the goal is chance.
        main=tuple(each for each in factorial.effects if acts_on(each.options[0], goal)),
        interactions=tuple(
            each
            for each in factorial.interactions
            if all(acts_on(name, goal) for name in each.options)
        ),
        unknown=factorial.unknown,
        fitted=tuple(fitted),
        lack_of_fit=None if fit is None else fit.lack_of_fit,
        used=fit is not None and not why,
        why=why,
    )
