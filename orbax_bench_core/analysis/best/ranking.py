"""Ranking of points by a goal: medians, paired ratios, and which points tie with the best."""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from orbax_bench_core.analysis.best.model import Ranked
from orbax_bench_core.analysis.intervals import t_interval
from orbax_bench_core.gate import holm_levels

LEVEL: Final = 0.05
"""Level of ties, and of what lies outside an interval."""

SAME: Final = 1.01
"""Points that are behind the best by a smaller ratio tie with it, however surely they are."""

Floats = npt.NDArray[np.float64]


def rank(values: Mapping[str, Mapping[int, float]]) -> tuple[Ranked, ...]:
    """Ranks points by their medians, the best first, and says which tie with it.

    Rounds are interleaved, so points are paired by round: drift of the machine cancels. Each other
    point is tested against the one with the smallest median, by a one-sided paired t-test on log
    values, with Holm's correction over all of them; those of which p is above `LEVEL` are tied, and
    those that are less than 1 % behind. Whatever the truth, the true best is then in the set of
    ties with probability 1 - LEVEL or more, because it leaves the set only by an error (simulated
    in `perf.best`).
    """
    found = {point: rounds for point, rounds in values.items() if rounds}
    if not found:
        return ()
    medians = {point: statistics.median(rounds.values()) for point, rounds in found.items()}
    order = sorted(found, key=lambda point: (medians[point], point))
    best = found[order[0]]
    compared = {point: ratio_of(found[point], best) for point in order[1:]}
    tested = {point: each.p for point, each in compared.items() if each.p is not None}
    levels = holm_levels(tested, len(tested), LEVEL)
    places = [
        Ranked(
            point_id=order[0],
            rounds=len(best),
            median=medians[order[0]],
            ratio=1.0,
            low=None,
            high=None,
            tied=True if len(best) > 1 else None,
        )
    ]
    for point, each in compared.items():
        tied = None
        if each.p is not None:
            tied = each.p > levels[point] or (each.ratio is not None and each.ratio < SAME)
        places.append(
            Ranked(
                point_id=point,
                rounds=len(found[point]),
                median=medians[point],
                ratio=each.ratio,
                low=each.low,
                high=each.high,
                tied=tied,
            )
        )
    return tuple(places)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeanRatio:
    """Ratio of paired values, as geometric mean over rounds."""

    ratio: float | None  # the ratio; None without a round that has both
    low: float | None = None  # lower end of its interval; None with fewer than two rounds
    high: float | None = None  # upper end of it
    # one-sided p-value of "not larger than 1"; None with fewer than two rounds
    p: float | None = None


def ratio_of(values: Mapping[int, float], against: Mapping[int, float]) -> MeanRatio:
    """Returns the ratio of the values of one point to those of another, paired by round."""
    logs = [math.log(values[at] / against[at]) for at in sorted(values.keys() & against.keys())]
    if not logs:
        return MeanRatio(ratio=None)
    if len(logs) == 1:
        return MeanRatio(ratio=math.exp(logs[0]))
    mean, half, p = t_interval(logs, LEVEL)
    return MeanRatio(
        ratio=math.exp(mean),
        low=math.exp(mean - half),
        high=math.exp(mean + half),
        p=p,
    )


def complete_rounds(
    values: Mapping[str, Mapping[int, float]], points: Sequence[str]
) -> tuple[Floats, tuple[int, ...]]:
    """Returns log values, (rounds, points), in the rounds that all points have, and the rounds."""
    common: Any = set.intersection(*(set(values[point]) for point in points)) if points else set()
    rounds = tuple(sorted(common))
    table = [[math.log(values[point][at]) for point in points] for at in rounds]
    return np.array(table, dtype=np.float64).reshape(len(rounds), len(points)), rounds
