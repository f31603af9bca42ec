"""Factorial analysis of a sweep: main effects, pairs, a fit of all points, and confidence in one.

Estimates are made process by process, by least squares on the mean log values of its rounds, and
averaged over the worker processes; their intervals are those of t over the processes, see
`ranking`. This is the analysis of a randomized block design with processes as blocks (Box, Hunter
and Hunter, "Statistics for Experimenters", 2005, chapters 4, 5).

How surely a point is near the fastest is the sum of the chances of single points, which stands for
their joint chance and is never less (Chen et al., "Simulation budget allocation", Discrete Event
Dynamic Systems 10 (2000) 251).
"""

import bisect
import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import numpy as np

from orbax_bench_core.analysis.best import model
from orbax_bench_core.analysis.best.observations import Observed, Values, acts_on, choices
from orbax_bench_core.analysis.best.ranking import (
    FEWEST,
    LEVEL,
    Floats,
    MeanLog,
    chance_below,
    complete_rounds,
)
from orbax_bench_core.config import ExecutionConfig
from orbax_bench_core.gate import holm_levels

MOST_COLUMNS: Final = 400
"""A design with more columns than these is fitted by main effects alone, or not at all: the time
that it takes grows with their cube."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FactorialLayout:
    """Options that vary, and the level of each in every point."""

    # values of each option; the first is what others are compared with
    levels: Mapping[str, tuple[Any, ...]]
    rows: tuple[tuple[int, ...], ...]  # place of the value of each option, point by point

    @functools.cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of options, by their places."""
        return tuple(itertools.combinations(range(len(self.levels)), 2))

    @property
    def columns(self) -> int:
        """Columns of the design with main effects alone."""
        return 1 + sum(len(levels) - 1 for levels in self.levels.values())


@dataclasses.dataclass(frozen=True, kw_only=True)
class FactorialFit:
    """Fit of all points by main effects and pairs."""

    logs: Floats  # fitted log values, (processes, points)
    lack_of_fit: float  # p-value of the F test that nothing is left beside main effects and pairs

    @property
    def means(self) -> Floats:
        """Fitted mean of each point, on the log scale."""
        return np.asarray(self.logs.mean(axis=0), dtype=np.float64)

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against it."""
        return self.lack_of_fit > LEVEL


@dataclasses.dataclass(frozen=True, kw_only=True)
class Factorial:
    """Factorial analysis of a layout: effects, interactions, and the fit of both."""

    # main effects, option by option; of an option that cannot be told from others none
    effects: tuple[model.OptionContrast, ...] = ()
    interactions: tuple[model.OptionContrast, ...] = ()  # contrasts of all pairs of options
    unknown: tuple[str, ...] = ()  # why effects are missing, a sentence each
    fit: FactorialFit | None = None  # the fit of all points; None if there is none
    fit_unknown: str = ""  # why there is none; empty if there is one


def analyse(layout: FactorialLayout, logs: Floats) -> Factorial:
    """Estimates main effects, pairs and the fit.

    Args:
        layout: What varies.
        logs: Log values by worker process, (processes, points).
    """
    if len(logs) < FEWEST:
        said = (
            f"effects need {FEWEST} worker processes in which every point has a value; there "
            f"{'is' if len(logs) == 1 else 'are'} {len(logs)}"
        )
        return Factorial(unknown=(said,), fit_unknown=said)
    free = [len(levels) - 1 for levels in layout.levels.values()]
    columns = layout.columns + sum(free[first] * free[second] for first, second in layout.pairs)
    fits = columns <= min(len(layout.rows), MOST_COLUMNS)
    with_pairs = _Design.of(layout, pairs=True) if fits else None
    # Whether the points determine every coefficient.
    if with_pairs is not None and np.linalg.matrix_rank(with_pairs.columns) == columns:
        effects = _effects(layout, with_pairs, logs)
        interactions = _interactions(layout, with_pairs, logs)
        fit, why = _fit(with_pairs, logs)
        return Factorial(effects=effects, interactions=interactions, fit=fit, fit_unknown=why)
    if layout.columns > MOST_COLUMNS:
        said = f"effects of more than {MOST_COLUMNS} values of options are not computed"
        return Factorial(unknown=(said,), fit_unknown=said)
    design = _Design.of(layout, pairs=False)
    told = _told(layout, design)
    unknown = [
        f"{option} does not vary on its own: its effect cannot be told from that of others"
        for option in layout.levels
        if option not in told
    ]
    if len(layout.levels) > 1:
        unknown.append("not enough combinations were measured for pairs of options")
    effects = _effects(layout, design, logs, told)
    return Factorial(
        effects=effects,
        unknown=tuple(unknown),
        fit_unknown="not enough combinations were measured for a fit by pairs of options",
    )


@dataclasses.dataclass(frozen=True)
class _Design:
    """Columns of deviations, which add up to 0 over the levels."""

    columns: Floats  # shape (points, columns)
    # columns of each term: of nothing, of an option, of a pair of options
    places: Mapping[tuple[int, ...], slice]

    @classmethod
    def of(cls, layout: FactorialLayout, *, pairs: bool) -> Self:
        codes = [_code(len(levels)) for levels in layout.levels.values()]
        rows = np.array(layout.rows).reshape(len(layout.rows), len(codes))
        blocks: dict[tuple[int, ...], Floats] = {(): np.ones((len(rows), 1))}
        for place, code in enumerate(codes):
            blocks[place,] = code[rows[:, place]]
        for first, second in layout.pairs if pairs else ():
            product = blocks[first,][:, :, None] * blocks[second,][:, None, :]
            blocks[first, second] = product.reshape(len(rows), -1)
        ends = list(itertools.accumulate(block.shape[1] for block in blocks.values()))
        places = {
            term: slice(begin, end)
            for term, begin, end in zip(blocks, [0, *ends[:-1]], ends, strict=True)
        }
        return cls(np.hstack(list(blocks.values())), places)

    @functools.cached_property
    def inverse(self) -> Floats:
        """Pseudo-inverse of the columns."""
        return np.asarray(np.linalg.pinv(self.columns), dtype=np.float64)


def _code(levels: int) -> Floats:
    """Returns one row per level: deviations from the mean of all, the last minus the others."""
    return np.vstack([np.eye(levels - 1), -np.ones((1, levels - 1))])


def _told(layout: FactorialLayout, design: _Design) -> set[str]:
    """Returns the options whose effect the points determine."""
    reach = design.inverse @ design.columns
    return {
        option
        for place, option in enumerate(layout.levels)
        if np.allclose(
            reach[design.places[place,]], np.eye(len(reach))[design.places[place,]], atol=1e-8
        )
    }


def _effects(
    layout: FactorialLayout, design: _Design, logs: Floats, told: set[str] | None = None
) -> tuple[model.OptionContrast, ...]:
    by_process = design.inverse @ logs.T
    found = []
    for place, (option, levels) in enumerate(layout.levels.items()):
        if told is not None and option not in told:
            continue
        code = _code(len(levels))
        for index, value in enumerate(levels[1:], start=1):
            weights = code[index] - code[0]
            estimates = weights @ by_process[design.places[place,]]
            found.append(_contrast((option,), (value,), levels[:1], estimates))
    return _marked(found)


def _interactions(
    layout: FactorialLayout, design: _Design, logs: Floats
) -> tuple[model.OptionContrast, ...]:
    by_process = design.inverse @ logs.T
    names, levels = list(layout.levels), list(layout.levels.values())
    found = []
    for first, second in layout.pairs:
        codes = _code(len(levels[first])), _code(len(levels[second]))
        for one, other in itertools.product(
            range(1, len(levels[first])), range(1, len(levels[second]))
        ):
            weights = np.outer(codes[0][one] - codes[0][0], codes[1][other] - codes[1][0]).ravel()
            found.append(
                _contrast(
                    (names[first], names[second]),
                    (levels[first][one], levels[second][other]),
                    (levels[first][0], levels[second][0]),
                    weights @ by_process[design.places[first, second]],
                )
            )
    return _marked(found)


def _contrast(
    options: tuple[str, ...],
    values: tuple[Any, ...],
    against: tuple[Any, ...],
    estimates: Floats,
) -> tuple[model.OptionContrast, float]:
    """Returns a contrast, and the two-sided p-value that it is 1."""
    found = MeanLog.of(estimates)
    ratio, low, high = found.ratio()
    assert low is not None and high is not None and found.p is not None
    contrast = model.OptionContrast(
        options=options,
        values=values,
        against=against,
        ratio=ratio,
        low=low,
        high=high,
        matters=False,
    )
    return contrast, found.p


def _marked(
    found: Sequence[tuple[model.OptionContrast, float]],
) -> tuple[model.OptionContrast, ...]:
    """Returns contrasts of one kind, those marked that Holm's procedure over all rejects."""
    levels = holm_levels({index: p for index, (_, p) in enumerate(found)}, len(found), LEVEL)
    return tuple(
        contrast.model_copy(update={"matters": p <= levels[index]})
        for index, (contrast, p) in enumerate(found)
    )


def _fit(design: _Design, logs: Floats) -> tuple[FactorialFit | None, str]:
    from scipy.special import fdtrc

    processes, points = logs.shape
    free = points - design.columns.shape[1]
    if free < 1:
        return None, "main effects and pairs describe every combination: the means are the fit"
    hat = design.columns @ design.inverse
    rest = logs - logs @ hat.T
    mean = rest.mean(axis=0)
    left = processes * float((mean**2).sum()) / free
    pure = float(((rest - mean) ** 2).sum()) / ((processes - 1) * free)
    lack = 1.0 if pure < 1e-20 else float(fdtrc(free, (processes - 1) * free, left / pure))
    return FactorialFit(logs=logs @ hat.T, lack_of_fit=lack), ""


NEAR: Final = math.log(1.05)
"""Points within 5 % of the fastest are as good as it: the indifference zone, on the log scale."""

MOST_ROUNDS: Final = 100_000
"""More rounds, or processes, than these are not counted."""


def separation(
    logs: Floats, chosen: int, *, rounds: int, execution: ExecutionConfig
) -> model.Confidence:
    """Returns how surely the chosen point is within 5 % of the fastest.

    The chance that point k is over 5 % faster is that of a t statistic below
    -(d_k + log 1.05) / error_k, over all looks, where d_k is how far its mean lies behind the
    chosen one. The risk is the sum over all points, which is at least the joint chance.

    Args:
        logs: Log values by worker process, shape (processes, points), measured or fitted.
        chosen: Place of the chosen point.
        rounds: Rounds that these are the means of.
        execution: Says how many rounds it takes to have more processes.
    """
    processes, points = logs.shape
    confidence = model.Confidence(
        risk=None, rounds=rounds, processes=processes, missing=None, noise=None
    )
    if processes < FEWEST or points < 2:
        return confidence
    apart = np.delete(logs - logs[:, [chosen]], chosen, axis=1)
    ahead = apart.mean(axis=0) + NEAR
    spread = np.maximum(apart.std(axis=0, ddof=1), 1e-12)

    def risk(after: int) -> float:
        return float(chance_below(-ahead * math.sqrt(after) / spread, after).sum())

    candidates = range(processes, MOST_ROUNDS)
    place = bisect.bisect_left(candidates, True, key=lambda after: risk(after) <= LEVEL)
    missing = None
    if place < len(candidates):
        last = execution.process_of(rounds - 1) + 1
        missing = max(0, execution.rounds_of(last + place) - rounds) if place else 0
    return confidence.model_copy(
        update={
            "risk": min(1.0, risk(processes)),
            "missing": missing,
            "noise": float(np.sqrt((spread**2).mean() / 2)),
        }
    )


_MOST_POINTS: Final = 5000
"""A case with more points than these is not fitted: nobody reads it, and it would take minutes."""


def factorial_of(
    points: Sequence[Observed],
    values: Values,
    varied: Mapping[str, tuple[Any, ...]],
    processes: Mapping[int, int],
) -> tuple[Factorial, tuple[int, ...]]:
    """Returns the factorial analysis of measured points, and the rounds that all of them have."""
    logs, rounds = complete_rounds(values, [point.point.id for point in points], processes)
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
    goal: model.Goal,
    factorial: Factorial,
    rounds: Sequence[int],
    points: Sequence[Observed],
    *,
    whole: bool,
) -> model.Effects:
    """Returns effects and fit of a factorial analysis."""
    fit = factorial.fit
    fitted: list[model.FittedPlace] = []
    why = factorial.fit_unknown
    if fit is not None:
        pairs = zip((point.point.id for point in points), fit.means, strict=True)
        fitted = [
            model.FittedPlace(point_id=id_, value=math.exp(mean))
            for id_, mean in sorted(pairs, key=lambda pair: float(pair[1]))
        ]
        if not fit.holds:
            why = (
                "more than main effects and pairs is at work (lack of fit, "
                f"p = {fit.lack_of_fit:.2g}): the means count"
            )
        elif not whole:
            why = "not every point was measured in every round: the means count"
    return model.Effects(
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
