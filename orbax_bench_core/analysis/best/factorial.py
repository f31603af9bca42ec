"""Factorial analysis of a sweep: main effects and pairs of options, and confidence in one point.

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
from typing import Any, Final, Literal, Self

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
"""A design with more columns than these is solved for main effects alone, or not at all: the time
that it takes grows with their cube."""

NEAR: Final = math.log(1.05)
"""Points within 5 % of the fastest are as good as it: the indifference zone, on the log scale."""
_MOST_ROUNDS: Final = 100_000
"""More rounds, or processes, than these are not counted."""
_MOST_NEAR: Final = 10_000
"""Thousandths of the log scale by which another may be better, at most."""
_MOST_POINTS: Final = 5000
"""Effects of more points than these take minutes, and nobody reads them."""
_Term = tuple[int, ...]
"""An option or a pair of them, by their places; nothing is the mean of all."""


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
class Factorial:
    """Factorial analysis of a layout; see `model.Effects`."""

    effects: tuple[model.OptionContrast, ...] = ()
    interactions: tuple[model.OptionContrast, ...] = ()
    unknown: Literal["", "few processes", "too large"] = ""
    confounded: tuple[str, ...] = ()
    has_pairs: bool = True


def analyse(layout: FactorialLayout, logs: Floats) -> Factorial:
    """Estimates main effects and, where the points determine them all, pairs.

    Args:
        layout: What varies.
        logs: Log values by worker process, (processes, points).
    """
    if len(logs) < FEWEST:
        return Factorial(unknown="few processes")
    free = [len(levels) - 1 for levels in layout.levels.values()]
    columns = layout.columns + sum(free[first] * free[second] for first, second in layout.pairs)
    if columns <= min(len(layout.rows), MOST_COLUMNS):
        design = _Design.of(layout, pairs=True)
        if np.linalg.matrix_rank(design.columns) == columns:
            return Factorial(
                effects=_contrasts(layout, design, logs, design.mains),
                interactions=_contrasts(layout, design, logs, layout.pairs),
            )
    if layout.columns > MOST_COLUMNS:
        return Factorial(unknown="too large")
    design = _Design.of(layout, pairs=False)
    told = [term for term in design.mains if design.determines(term)]
    return Factorial(
        effects=_contrasts(layout, design, logs, told),
        confounded=tuple(
            option for place, option in enumerate(layout.levels) if (place,) not in told
        ),
        has_pairs=len(layout.levels) == 1,
    )


@dataclasses.dataclass(frozen=True)
class _Design:
    """Columns of deviations, which add up to 0 over the levels."""

    columns: Floats  # shape (points, columns)
    places: Mapping[_Term, slice]  # the columns of each term

    @classmethod
    def of(cls, layout: FactorialLayout, *, pairs: bool) -> Self:
        codes = [_code(len(levels)) for levels in layout.levels.values()]
        rows = np.array(layout.rows).reshape(len(layout.rows), len(codes))
        blocks: dict[_Term, Floats] = {(): np.ones((len(rows), 1))}
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

    @property
    def mains(self) -> list[_Term]:
        """The options, each a term of its own."""
        return [term for term in self.places if len(term) == 1]

    @functools.cached_property
    def inverse(self) -> Floats:
        """Pseudo-inverse of the columns."""
        return np.asarray(np.linalg.pinv(self.columns), dtype=np.float64)

    def determines(self, term: _Term) -> bool:
        """Returns whether the points tell a term from all others."""
        # The pseudo-inverse gives back exactly what the points tell: of a term that others can
        # stand for, it gives back a mixture with these.
        own = self.places[term]
        reach = self.inverse[own] @ self.columns
        return np.allclose(reach, np.eye(self.columns.shape[1])[own], atol=1e-8)


def _code(levels: int) -> Floats:
    """Returns one row per level: deviations from the mean of all, the last minus the others."""
    return np.vstack([np.eye(levels - 1), -np.ones((1, levels - 1))])


def _contrasts(
    layout: FactorialLayout, design: _Design, logs: Floats, terms: Sequence[_Term]
) -> tuple[model.OptionContrast, ...]:
    """Returns the contrasts of terms of one kind with the first levels.

    Those that Holm's procedure over all of them rejects are marked.
    """
    by_process = design.inverse @ logs.T
    found: list[model.OptionContrast] = []
    chances: dict[int, float] = {}
    for term in terms:
        names = tuple(list(layout.levels)[place] for place in term)
        levels = [layout.levels[name] for name in names]
        codes = [_code(len(each)) for each in levels]
        for places in itertools.product(*(range(1, len(each)) for each in levels)):
            # Of a pair the weights are the product of those of its options.
            weights = np.ones(1)
            for code, place in zip(codes, places, strict=True):
                weights = np.outer(weights, code[place] - code[0]).ravel()
            mean = MeanLog.of(weights @ by_process[design.places[term]])
            ratio, low, high = mean.ratio()
            assert low is not None and high is not None and mean.p is not None
            chances[len(found)] = mean.p
            found.append(
                model.OptionContrast(
                    options=names,
                    values=tuple(of[place] for of, place in zip(levels, places, strict=True)),
                    against=tuple(of[0] for of in levels),
                    ratio=ratio,
                    low=low,
                    high=high,
                    matters=False,
                )
            )
    limits = holm_levels(chances, len(found), LEVEL)
    return tuple(
        contrast.model_copy(update={"matters": chances[at] <= limits[at]})
        for at, contrast in enumerate(found)
    )


def separation(
    logs: Floats, chosen: int, *, rounds: int, execution: ExecutionConfig
) -> model.Confidence:
    """Returns how surely the chosen point is within 5 % of the fastest.

    The chance that point k is over 5 % faster is that of a t statistic below
    -(d_k + log 1.05) / error_k, over all looks, where d_k is how far its mean lies behind the
    chosen one. The risk is the sum over all points, which is at least the joint chance.

    Args:
        logs: Log values by worker process, shape (processes, points).
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
    ahead = apart.mean(axis=0)
    spread = np.maximum(apart.std(axis=0, ddof=1), 1e-12)

    def risk(after: int, near: float = NEAR) -> float:
        return float(chance_below(-(ahead + near) * math.sqrt(after) / spread, after).sum())

    # On the log scale in steps of 0.1 %; a factor of 22,000 is the most.
    within = bisect.bisect_left(
        range(_MOST_NEAR), True, key=lambda near: risk(processes, near / 1000) <= LEVEL
    )
    candidates = range(processes, _MOST_ROUNDS)
    place = bisect.bisect_left(candidates, True, key=lambda after: risk(after) <= LEVEL)
    missing = None
    if place < len(candidates):
        last = execution.process_of(rounds - 1) + 1
        missing = max(0, execution.rounds_of(last + place) - rounds) if place else 0
    return confidence.model_copy(
        update={
            "risk": min(1.0, risk(processes)),
            "missing": missing,
            "within": math.expm1(within / 1000) if within < _MOST_NEAR else None,
            "noise": float(np.sqrt((spread**2).mean() / 2)),
        }
    )


def effects_of(
    goal: model.Goal,
    points: Sequence[Observed],
    values: Values,
    varied: Mapping[str, tuple[Any, ...]],
    processes: Mapping[int, int],
) -> model.Effects:
    """Returns the effects of options on a goal, in the rounds that all measured points have.

    Args:
        goal: What the options act on; effects of options that cannot are left out.
        points: Points that have values.
        values: Values of the goal, by point and round.
        varied: Values of each option that differs between the points.
        processes: Which worker process measured each round, as a number.
    """
    logs, rounds = complete_rounds(values, [point.point.id for point in points], processes)
    found = Factorial(unknown="too large")
    if len(points) <= _MOST_POINTS:
        rows = tuple(
            tuple(levels.index(choices(point.point).get(name)) for name, levels in varied.items())
            for point in points
        )
        # Of options that failed everywhere with one value, only the values that are left count.
        found = analyse(_present(FactorialLayout(levels=dict(varied), rows=rows)), logs)
    # What an option shows that cannot act on the goal is chance.
    acting = [
        tuple(each for each in kind if all(acts_on(name, goal) for name in each.options))
        for kind in (found.effects, found.interactions)
    ]
    return model.Effects(
        goal=goal,
        rounds=len(rounds),
        processes=len(logs),
        main=acting[0],
        interactions=acting[1],
        unknown=found.unknown,
        confounded=found.confounded,
        has_pairs=found.has_pairs,
    )


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
