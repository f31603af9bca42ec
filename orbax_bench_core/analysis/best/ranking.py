"""Ranking of points by a goal: medians, paired ratios, and which points tie with the best.

What an option does differs from one worker process to the next, so the mean over the rounds of one
process is one value, and tests and intervals are those of t over processes: at least `FEWEST`.

One may look at the answer after any round and measure more until it pleases. Every p-value is
therefore multiplied by 1.2 for each process, at most by 18. With that a difference that is not
there is found at the 5 % level, after whatever round of 60, in about 5 % of sweeps of two equal
points, and at the 1 % level in 1.2 %: see `perf.gate.choices`.
"""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from orbax_bench_core.analysis.best.model import Ranked
from orbax_bench_core.gate import holm_levels

LEVEL: Final = 0.05
"""Level of ties, and of what lies outside an interval, over all looks together."""

FEWEST: Final = 3
"""Worker processes below which nothing is said: two tell too little of a spread."""

SAME: Final = 1.01
"""Points that are behind the best by a smaller ratio tie with it, however surely they are."""

_PER_PROCESS: Final = 1.2
_MOST: Final = 18.0

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeanLog:
    """Mean of log values over worker processes, and how sure it is."""

    mean: float
    # standard error of it, with the spread from process to process; None below `FEWEST`
    error: float | None
    processes: int

    @classmethod
    def of(cls, values: Floats) -> Self:
        """Returns the mean of values, one for each process."""
        error, count = None, len(values)
        if count >= FEWEST:  # rounding leaves some digits of equal values
            error = max(float(np.std(values, ddof=1)) / math.sqrt(count), 1e-12)
        return cls(mean=float(np.mean(values)), error=error, processes=count)

    @property
    def p(self) -> float | None:
        """Two-sided p-value of a mean of 0, over all looks; None without an error."""
        if self.error is None:
            return None
        return min(1.0, 2 * float(chance_below(-abs(self.mean) / self.error, self.processes)))

    def ratio(self, level: float = LEVEL) -> tuple[float, float | None, float | None]:
        """Returns the ratio and its interval, which is what a test at the level does not reject.

        Args:
            level: Chance of an interval that does not hold the true ratio, over all looks.

        Returns:
            The ratio and both ends; None for the ends where there are too few processes.
        """
        if self.error is None:
            return math.exp(self.mean), None, None
        from scipy.special import stdtrit

        share = level / 2 / looks(self.processes)
        half = -float(stdtrit(self.processes - 1, share)) * self.error
        return math.exp(self.mean), math.exp(self.mean - half), math.exp(self.mean + half)


def looks(processes: int) -> float:
    """Returns the factor for a p-value when a reader may have looked after each round."""
    return min(_PER_PROCESS * processes, _MOST)


def chance_below(statistic: Any, processes: int) -> Any:
    """Returns the chance of a t statistic that is so small, over all looks."""
    from scipy.special import stdtr

    return looks(processes) * stdtr(processes - 1, statistic)


def rank(
    values: Mapping[str, Mapping[int, float]], processes: Mapping[int, int]
) -> tuple[Ranked, ...]:
    """Ranks points by their medians, the best first, and says which tie with it.

    Rounds are interleaved, so points are paired by round: drift of the machine cancels. Each other
    point is tested against the one with the smallest median, by a two-sided paired t-test of log
    values over worker processes, with Holm's correction over all of them; those of which p is above
    their level are tied, and those that are less than 1 % behind. The interval of a ratio is that
    of the same test at the same level, so that it holds 1 where the test tells nothing. Whatever
    the truth, the true best is then in the set of ties with probability 1 - LEVEL or more, because
    it leaves the set only by an error (simulated in `perf.best`).

    Args:
        values: Values of each point, by round.
        processes: Which worker processes measured a round, as a number; see `processes_of`.
    """
    found = {point: rounds for point, rounds in values.items() if rounds}
    if not found:
        return ()
    medians = {point: statistics.median(rounds.values()) for point, rounds in found.items()}
    # By the ids where medians are equal, so that the same records give the same order again.
    order = sorted(found, key=lambda point: (medians[point], point))
    best = found[order[0]]
    compared = {point: ratio_of(found[point], best, processes) for point in order[1:]}
    tested = {point: each.p for point, each in compared.items() if each and each.p is not None}
    levels = holm_levels(tested, len(tested), LEVEL)
    first = Ranked(
        point_id=order[0],
        rounds=len(best),
        median=medians[order[0]],
        ratio=1.0,
        low=None,
        high=None,
        tied=True if len({processes[at] for at in best}) >= FEWEST else None,
    )
    places = [first]
    for point, each in compared.items():
        level = levels.get(point)
        ratio, low, high = (None,) * 3 if each is None else each.ratio(level or LEVEL)
        tied = None
        if level is not None and ratio is not None:
            tied = tested[point] > level or ratio < SAME
        places.append(
            Ranked(
                point_id=point,
                rounds=len(found[point]),
                median=medians[point],
                ratio=ratio,
                low=low,
                high=high,
                tied=tied,
            )
        )
    return tuple(places)


def ratio_of(
    values: Mapping[int, float], against: Mapping[int, float], processes: Mapping[int, int]
) -> MeanLog | None:
    """Returns the ratio of one point to another, paired by round; None without a common round.

    Args:
        values: Values of one point, by round.
        against: Values of the other, by round.
        processes: Which worker process measured each round, as a number.
    """
    rounds = sorted(values.keys() & against.keys())
    if not rounds:
        return None
    logs = np.array([math.log(values[at] / against[at]) for at in rounds])
    return MeanLog.of(by_process(logs, [processes[at] for at in rounds]))


def by_process(logs: Floats, numbers: Sequence[int]) -> Floats:
    """Returns the mean of log values, shape (rounds, ...), over the rounds of each process.

    Args:
        logs: Log values, the first axis of which counts rounds.
        numbers: The process of each round.

    Returns:
        Shape (processes, ...), in the order of their numbers.
    """
    _, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), *logs.shape[1:]))
    np.add.at(sums, places, logs)
    return np.asarray((sums.T / counts).T, dtype=np.float64)


def complete_rounds(
    values: Mapping[str, Mapping[int, float]], points: Sequence[str], processes: Mapping[int, int]
) -> tuple[Floats, tuple[int, ...]]:
    """Returns mean log values, (processes, points), in the rounds that all points have, and these.

    Rounds of one process are one value: see `by_process`.
    """
    common: Any = set.intersection(*(set(values[point]) for point in points)) if points else set()
    rounds = tuple(sorted(common))
    table = [[math.log(values[point][at]) for point in points] for at in rounds]
    logs = np.array(table, dtype=np.float64).reshape(len(rounds), len(points))
    return by_process(logs, [processes[at] for at in rounds]), rounds
