"""Figures of the choice between two options that differ from one worker process to the next.

Two points are measured in interleaved rounds, and new workers start as the default of
`execution.rounds_per_process` says. In each process each point is off by an amount of its own, the
"process x option" of these tables; its standard deviation is of one point, so that a ratio of two
has 1.41 times as much. What `orbax-bench best` says is looked at once, after each round, or as
often as its own advice leads to: the rounds that it says are missing are measured, until it says
Best, or that the risk is at most 5 %.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from orbax_bench_core.analysis import best
from orbax_bench_core.config import ExecutionConfig
from perf.figure import Figure, at_least, at_most, shown
from perf.gate.noise import Floats

STUDIES: Final = 2000
QUICK: Final = 100

APART: Final = (0.0, 0.02, 0.04, 0.07)
CVS: Final = (0.05, 0.2)

_ONCE: Final = 20
"""Rounds of a sweep that is looked at once."""
_FIRST: Final = 4
_MOST: Final = 60
"""Rounds at the first look, and at the last, where it is looked at several times."""
_WORSE: Final = math.log(1.06)
"""How far behind a point is that is told to be within 5 %, and is not."""
_EXECUTION: Final = ExecutionConfig()
_PROCESSES: Final = [_EXECUTION.process_of(at) for at in range(_MOST)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """What is said after some rounds of two points, 0 and 1."""

    rounds: int
    named: int | None  # the point that is called best; None where they tie
    chosen: int  # the point with the smaller mean
    confidence: best.Confidence
    ratio: tuple[float, float]  # interval of the ratio of point 1 to point 0, log


def answer_of(logs: Floats) -> Answer:
    """Returns what is said of log times, shape (rounds, 2)."""
    values = {str(point): dict(enumerate(np.exp(logs[:, point]))) for point in range(2)}
    places = best.rank(values, dict(enumerate(_PROCESSES[: len(logs)])))
    first, second = places
    assert second.low is not None and second.high is not None
    ends = math.log(second.low), math.log(second.high)
    named = int(first.point_id) if second.tied is False else None
    seen = best.by_process(logs, _PROCESSES[: len(logs)])
    chosen = int(seen.mean(axis=0).argmin())
    return Answer(
        rounds=len(logs),
        named=named,
        chosen=chosen,
        confidence=best.separation(seen, chosen, rounds=len(logs), execution=_EXECUTION),
        ratio=ends if second.point_id == "1" else (-ends[1], -ends[0]),
    )


def following(logs: Floats) -> Iterator[Answer]:
    """Yields what is said each time, to somebody who does what the answers advise."""
    rounds = _FIRST
    while True:
        answer = answer_of(logs[:rounds])
        yield answer
        missing = answer.confidence.missing
        if answer.named is not None or missing == 0 or rounds == len(logs):
            return
        rounds = len(logs) if missing is None else min(rounds + missing, len(logs))


def sweeps(rng: np.random.Generator, apart: float, cv: float, behind: float) -> Iterator[Floats]:
    """Yields log times of two points, (rounds, 2), of which the second takes `behind` longer."""
    sigma = math.sqrt(math.log1p(cv**2))
    while True:
        own = apart * rng.standard_normal((_PROCESSES[-1] + 1, 2))
        noise = sigma * rng.standard_normal((_MOST, 2))
        yield own[_PROCESSES] + noise + np.array([0.0, behind])


def equal_figures(studies: int, seed: int = 0) -> list[Figure]:
    """Returns how often one of two equal points is called best, and what the intervals hold."""
    found = []
    for cv, apart in itertools.product(CVS, APART):
        rng = np.random.default_rng(seed)
        once = followed = always = missed = contrary = 0
        for logs in itertools.islice(sweeps(rng, apart, cv, 0.0), studies):
            single = answer_of(logs[:_ONCE])
            *_, last = said = list(following(logs))
            once += single.named is not None
            followed += last.named is not None
            always += any(
                answer_of(logs[:rounds]).named is not None for rounds in range(_FIRST, _ONCE + 1)
            )
            missed += not last.ratio[0] <= 0 <= last.ratio[1]
            contrary += any(
                each.named is not None and each.ratio[0] <= 0 <= each.ratio[1] for each in said
            )
        name = _name(cv, apart)
        for way, count in (
            (f"in {_ONCE} rounds", once),
            ("its advice followed to the end", followed),
            (f"looked at after each of rounds {_FIRST} to {_ONCE}", always),
        ):
            group = f"one of two equal points is best, {way}"
            found.append(at_most(group, name, count, studies, best.LEVEL))
        group = "its interval misses the truth, its advice followed"
        found.append(at_most(group, name, missed, studies, best.LEVEL))
        group = "a point is best beside an interval that holds 1"
        found.append(at_most(group, name, contrary, studies, 0.0))
    return sorted(found, key=lambda figure: figure.group)


def risk_figures(studies: int, seed: int = 1) -> list[Figure]:
    """Returns how often a risk is called small of a point that another is 6 % better than."""
    found = []
    for cv, apart in itertools.product(CVS, APART):
        rng = np.random.default_rng(seed)
        wrong = dict.fromkeys((0.01, best.LEVEL), 0)
        for logs in itertools.islice(sweeps(rng, apart, cv, _WORSE), studies):
            risks = [
                each.confidence.risk
                for each in following(logs)
                if each.chosen == 1 and each.confidence.risk is not None
            ]
            for limit in wrong:
                wrong[limit] += any(risk <= limit for risk in risks)
        for limit, count in wrong.items():
            group = f"another is 6 % better where the risk is at most {limit:.0%}, advice followed"
            found.append(at_most(group, _name(cv, apart), count, studies, limit))
    return sorted(found, key=lambda figure: figure.group)


def power_figures(studies: int, seed: int = 2) -> list[Figure]:
    """Returns how often the better one of two points is called best, and after how many rounds."""
    found = []
    for size, cv, apart in itertools.product((0.1, 0.2), CVS, APART):
        rng = np.random.default_rng(seed)
        once = followed = chosen = rounds = 0
        for logs in itertools.islice(sweeps(rng, apart, cv, math.log1p(size)), studies):
            once += answer_of(logs[:_ONCE]).named == 0
            *_, last = following(logs)
            followed += last.named == 0
            chosen += last.chosen == 0
            rounds += last.rounds
        name, group = _name(cv, apart), f"{size:.0%} behind, the other is best"
        # What a t test of 12 processes cannot miss; all else is shown.
        sure = size == 0.2 and cv == min(CVS) and apart <= 0.04
        of = (f"{group}, in {_ONCE} rounds", name, once, studies)
        found.append(at_least(*of, 0.95) if sure else shown(*of))
        found.append(shown(f"{group}, its advice followed", name, followed, studies))
        right = f"{size:.0%} behind, the other is recommended, its advice followed"
        found.append(at_least(right, name, chosen, studies, 0.95))
        length = f"{group}: rounds, its advice followed"
        found.append(Figure(group=length, name=name, value=rounds / studies, share=False))
    return sorted(found, key=lambda figure: figure.group)


def _name(cv: float, apart: float) -> str:
    return f"CV {cv:.0%}, process x option {apart:.0%}"


def choice_figures(*, quick: bool) -> list[Figure]:
    """Returns all figures of the choice between two points."""
    studies = QUICK if quick else STUDIES
    return [*equal_figures(studies), *risk_figures(studies), *power_figures(studies // 2)]
