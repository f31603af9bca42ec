"""Effects of the options of a case: its factorial analysis, as it is kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orbax_bench_core.analysis.best.factorial import Contrast, Factorial, Layout, analyse
from orbax_bench_core.analysis.best.goals import acts_on
from orbax_bench_core.analysis.best.model import Effects, FittedPlace, Goal, OptionContrast
from orbax_bench_core.analysis.best.observations import Observed, Values, choices
from orbax_bench_core.analysis.best.ranking import complete_rounds

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
    layout = _present(Layout(levels=dict(varied), rows=rows))
    return analyse(layout, logs), rounds


def _present(layout: Layout) -> Layout:
    """Returns a layout without values that no point has, and without options that do not vary."""
    names = list(layout.levels)
    used = [sorted({row[place] for row in layout.rows}) for place in range(len(names))]
    kept = [place for place in range(len(names)) if len(used[place]) > 1]
    return Layout(
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
