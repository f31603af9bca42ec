"""Recommendation: the point that is chosen among the ties, and what speaks for it."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from orbax_bench_core.analysis.best import model, orbax_code
from orbax_bench_core.analysis.best.factorial import Factorial, separation
from orbax_bench_core.analysis.best.observations import MEASURES, Observed
from orbax_bench_core.analysis.best.ranking import FEWEST, complete_rounds, rank, ratio_of
from orbax_bench_core.analysis.best.words import evidence, option
from orbax_bench_core.analysis.page_cache import other_cache
from orbax_bench_core.config import ExecutionConfig
from orbax_bench_core.document import count
from orbax_bench_core.errors import listed
from orbax_bench_core.records import VERIFIED_WORDS, RunInfo

EQUAL: Final = math.log(1.01)
"""Ties whose estimates are within 1 % of the smallest are chosen among by bytes and files."""

_SAME_BYTES: Final = 1.01


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choice:
    """Facts that a recommendation is chosen from."""

    goal: model.Goal
    points: Mapping[str, Observed]  # all points of the case, by id
    # values of the goal, by point that can be chosen, then by round
    values: Mapping[str, Mapping[int, float]]
    ranking: model.Ranking
    factorial: Factorial | None  # what the fit says; None if the means count
    places: tuple[str, ...]  # the points of the fit, in its order
    varied: tuple[str, ...]  # names of what varies
    processes: Mapping[int, int]  # worker processes of each round, as a number
    execution: ExecutionConfig

    @property
    def paired(self) -> bool:
        """Whether rounds were interleaved."""
        return self.execution.order == "interleaved"


def recommend(choice: Choice) -> model.Recommendation:
    """Chooses among the ties: by the fit or else by the means, then by bytes, files and habit."""
    estimates = _estimates(choice)
    ties = [id_ for id_ in choice.ranking.ties if id_ in estimates]
    chosen, chosen_by = _chosen(choice, ties, estimates)
    observed = choice.points[chosen]
    confidence = _confidence(choice, chosen)
    against = _against_defaults(choice, chosen)
    return model.Recommendation(
        point_id=chosen,
        name=observed.point.name,
        chosen_by=chosen_by,
        code=orbax_code.as_code(observed.point),
        other_code=orbax_code.other_code(observed.point),
        why_no_code=orbax_code.why_no_code(observed.point),
        suite=orbax_code.as_suite(observed.point, observed.point.benchmark),
        differences=_differences(observed, choice.varied),
        defaults_from=orbax_code.RELEASE,
        against_defaults=against,
        confidence=confidence,
        evidence=evidence(
            choice.ranking,
            chosen,
            confidence,
            against=against,
            has_default=any(orbax_code.is_default(point.point) for point in choice.points.values()),
            knows_orbax=bool(orbax_code.orbax_options(observed.point)),
            verified=VERIFIED_WORDS[observed.weakest],
            paired=choice.paired,
        ),
    )


def _estimates(choice: Choice) -> dict[str, float]:
    """Returns the log estimate of each point, behind the smallest in the rounds that both have.

    A point with fewer rounds lacks those in which the machine may have been faster or slower, so
    that its plain mean says nothing.
    """
    if choice.factorial is not None and choice.factorial.fit is not None:
        means = choice.factorial.fit.means
        return {
            id_: float(mean)
            for id_, mean in zip(choice.places, means, strict=True)
            if id_ in choice.values
        }
    return {
        place.point_id: math.log(place.ratio)
        for place in choice.ranking.places
        if place.ratio is not None
    }


def _chosen(choice: Choice, ties: list[str], estimates: Mapping[str, float]) -> tuple[str, str]:
    smallest = min(estimates[id_] for id_ in ties)
    equal = [id_ for id_ in ties if estimates[id_] - smallest <= EQUAL]
    by = "the fit of main effects and pairs" if choice.factorial is not None else "the means"
    if len(equal) == 1:
        return equal[0], by
    sizes = {id_: _median(choice.points[id_], "bytes") for id_ in equal}
    least = min(sizes.values())
    equal = [id_ for id_ in equal if sizes[id_] <= least * _SAME_BYTES]
    files = {id_: choice.points[id_].files or 0 for id_ in equal}

    def order(id_: str) -> tuple[float, ...]:
        # Of options that are not as Orbax has them, the fewer the better.
        return files[id_], len(orbax_code.differing(choice.points[id_].point)), estimates[id_]

    return min(equal, key=order), f"{by}; among those within 1 %, bytes, files and Orbax's defaults"


def _median(observed: Observed, measure: str) -> float:
    values = list(observed.values.get(measure, {}).values())
    return float(np.median(values)) if values else math.inf


def _confidence(choice: Choice, chosen: str) -> model.Confidence:
    """Returns how surely the chosen point is within 5 % of the best.

    Points with fewer rounds than the chosen one are left aside; the others are compared in the
    rounds that all of them have.
    """
    fit = None if choice.factorial is None else choice.factorial.fit
    if not choice.paired:
        return model.Confidence(risk=None, rounds=0, missing=None, noise=None)
    most = len(choice.values[chosen])
    ids = [id_ for id_, of in choice.values.items() if fit is not None or len(of) >= most]
    logs, rounds = complete_rounds(choice.values, ids, choice.processes)
    if fit is not None:
        logs = fit.logs[:, [choice.places.index(id_) for id_ in ids]]
    return separation(logs, ids.index(chosen), rounds=len(rounds), execution=choice.execution)


def _against_defaults(choice: Choice, chosen: str) -> tuple[float, float, float] | None:
    """Returns the ratio to the point with Orbax's defaults, over the rounds that both have."""
    for id_, observed in choice.points.items():
        same = _asynchronous(observed) == _asynchronous(choice.points[chosen])
        if (
            orbax_code.is_default(observed.point)
            and same
            and id_ != chosen
            and id_ in choice.values
        ):
            found = ratio_of(choice.values[chosen], choice.values[id_], choice.processes)
            ratio, low, high = (None,) * 3 if found is None else found.ratio()
            if ratio is not None and low is not None and high is not None:
                return ratio, low, high
    return None


def _asynchronous(observed: Observed) -> Any:
    return observed.point.options.get("async_enabled")


def _differences(observed: Observed, varied: tuple[str, ...]) -> tuple[model.OptionDifference, ...]:
    return tuple(
        model.OptionDifference(
            option=name,
            value=observed.point.options[name],
            default=default,
            varied=name in varied,
            given=name in observed.point.given,
        )
        for name, default in orbax_code.differing(observed.point).items()
    )


_TRUSTED: Final = ("saved", "reference")


def remarks(
    points: Sequence[Observed], choice: Choice, chosen: str | None, *, memory: bool
) -> tuple[str, ...]:
    """Returns the notes a reader needs about the repeats behind a ranking."""
    found = [*_flags(points, choice, chosen)]
    if retried := [point for point in points if point.retried]:
        repeats = sum(len(point.retried) for point in retried)
        found.append(
            f"{count(repeats, 'repeat')} of {count(len(retried), 'point')} passed only when tried "
            f"again, and count: {listed([point.point.name for point in retried])}"
        )
    found += _verification(points)
    if memory and any(point.point.conditions.host_memory == "reused" for point in points):
        found.append(
            "peak memory is that of a worker which keeps what it freed for other points "
            "(host_memory: reused): an upper bound of what the point itself takes"
        )
    return tuple(found)


def _flags(points: Sequence[Observed], choice: Choice, chosen: str | None) -> Iterable[str]:
    flagged = [point for point in points if point.flagged]
    if not flagged:
        return
    repeats = sum(len(point.flagged) for point in flagged)
    kinds = dict.fromkeys(flag for point in flagged for flag in point.flagged.values())
    yield (
        f"{count(repeats, 'repeat')} of {count(len(flagged), 'point')} had {listed(list(kinds))}; "
        f"they are among these times. {_without(choice, chosen)}"
    )


def _without(choice: Choice, chosen: str | None) -> str:
    """Returns whether the answer would be the same without flagged repeats."""
    left = {
        id_: {at: v for at, v in of.items() if at not in choice.points[id_].flagged}
        for id_, of in choice.values.items()
    }
    ranked = rank(left, choice.processes)
    place = next((each for each in ranked if each.point_id == chosen), None)
    if place is None:
        return "Without them nothing is left of the point that is recommended"
    if place.tied is False:
        return (
            "Without them the point that is recommended would be behind "
            f"{choice.points[ranked[0].point_id].point.name}: do not trust the choice"
        )
    return "Without them the point that is recommended is still best or tied"


def _verification(points: Sequence[Observed]) -> Iterable[str]:
    for word, said in VERIFIED_WORDS.items():
        names = [point.point.name for point in points if point.verified and point.weakest == word]
        if names and word not in _TRUSTED:
            all_of_them = len(names) == len(points)
            which = f"all {len(names)} points" if all_of_them else count(len(names), "point")
            yield f"{which} {said}" + ("" if all_of_them else f": {listed(names)}")


def not_measured(
    points: Sequence[Observed],
    varied: Mapping[str, Sequence[Any]],
    info: RunInfo,
    processes: Mapping[int, int],
) -> tuple[str, ...]:
    """Returns the list of things that the run says nothing about."""
    point = points[0].point
    known = {**orbax_code.orbax_options(point), **point.given_options}
    fixed = {
        name: setting for name, setting in (known or point.options).items() if name not in varied
    }
    found = []
    if fixed:
        settings = listed([option(name, setting) for name, setting in fixed.items()], most=20)
        found.append(f"not varied: {settings}")
    measured = {measure for each in points for measure in each.values}
    lacking = [measure for measure in MEASURES if measure not in measured]
    if lacking:
        found.append(f"not measured: {', '.join(lacking)}")
    unseen = [each.point.name for each in points if not each.rounds]
    if unseen:
        found.append(f"without a repeat that passed: {listed(unseen)}")
    if info.expansion.skipped:
        names = listed([skip.point.name for skip in info.expansion.skipped])
        found.append(f"skipped by the suite: {names}")
    platforms = sorted({each.platform for each in points if each.platform})
    if platforms == ["cpu"]:
        found.append(
            "an accelerator: these are CPU devices, on which staging from device to host costs "
            "nothing like there, and `blocking` says little of it"
        )
    if (several := len(set(processes.values()))) < FEWEST:
        found.append(
            f"other worker processes: the rounds were measured in {several}, and what an option "
            "does differs from one to the next, by 4 to 7 % where that was measured"
        )
    states = [state for each in points for of in each.caches.values() for state in of]
    found += filter(None, [other_cache(states).rstrip(".")])
    found.append("other checkpoints, meshes, storage and numbers of hosts than those of this case")
    return tuple(found)
