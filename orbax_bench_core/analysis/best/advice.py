"""Recommendation: the point that is chosen among the ties, and what a reader must know of it."""

import dataclasses
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from orbax_bench_core.analysis.best import model, orbax_code
from orbax_bench_core.analysis.best.factorial import separation
from orbax_bench_core.analysis.best.observations import MEASURES, Observed
from orbax_bench_core.analysis.best.ranking import complete_rounds, rank, ratio_of
from orbax_bench_core.config import ExecutionConfig
from orbax_bench_core.records import VERIFIED_WORDS, RunInfo

EQUAL: Final = math.log(1.01)
"""Ties whose estimates are within 1 % of the smallest are chosen among by bytes and files."""
_SAME_BYTES: Final = 1.01
_TRUSTED: Final = ("saved", "reference")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choice:
    """Facts that a recommendation is chosen from."""

    points: Mapping[str, Observed]  # all points of the case, by id
    # values of the goal, by point that can be chosen, then by round
    values: Mapping[str, Mapping[int, float]]
    ranking: model.Ranking
    varied: tuple[str, ...]  # names of what varies
    processes: Mapping[int, int]  # worker processes of each round, as a number
    execution: ExecutionConfig


def recommend(choice: Choice) -> model.Recommendation:
    """Chooses among the ties: by the means, then by bytes, files and habit.

    Only points that tie with the best are chosen from.
    """
    chosen, chosen_by = _chosen(choice)
    observed = choice.points[chosen]
    default, against = _against_defaults(choice, chosen)
    return model.Recommendation(
        point_id=chosen,
        name=observed.point.name,
        benchmark=observed.point.benchmark,
        chosen_by=chosen_by,
        code=orbax_code.as_code(observed.point),
        short_code=orbax_code.short_code(observed.point, choice.varied),
        suite=orbax_code.as_suite(observed.point),
        differences=_differences(observed, choice.varied),
        defaults_from=orbax_code.RELEASE,
        default_point=default,
        against_defaults=against,
        confidence=_confidence(choice, chosen),
        verified=observed.weakest,
    )


def _chosen(choice: Choice) -> tuple[str, Literal["mean", "size and defaults"]]:
    """Returns the point of the smallest mean, behind the first in the rounds that both have.

    A point with fewer rounds lacks those in which the machine may have been faster or slower, so
    that its plain mean says nothing.
    """
    ties = set(choice.ranking.ties)
    means = {
        place.point_id: math.log(place.ratio)
        for place in choice.ranking.places
        if place.ratio is not None and place.point_id in ties
    }
    smallest = min(means.values())
    equal = [id_ for id_, mean in means.items() if mean - smallest <= EQUAL]
    if len(equal) == 1:
        return equal[0], "mean"
    # A point of which no repeat says its bytes comes last.
    known = {id_: choice.points[id_].values.get("bytes") or {0: math.inf} for id_ in equal}
    sizes = {id_: statistics.median(of.values()) for id_, of in known.items()}
    least = min(sizes.values())

    def order(id_: str) -> tuple[float, ...]:
        # Of options that are not as Orbax has them, the fewer the better.
        changes = len(orbax_code.differing(choice.points[id_].point))
        return choice.points[id_].files or 0, changes, means[id_]

    small = [id_ for id_ in equal if sizes[id_] <= least * _SAME_BYTES]
    return min(small, key=order), "size and defaults"


def _confidence(choice: Choice, chosen: str) -> model.Confidence:
    """Returns how surely the chosen point is within 5 % of the best.

    Points with fewer rounds than the chosen one are left aside; the others are compared in the
    rounds that all of them have.
    """
    if choice.execution.order != "interleaved":
        return model.Confidence(risk=None, rounds=0, missing=None, noise=None)
    most = len(choice.values[chosen])
    ids = [id_ for id_, of in choice.values.items() if len(of) >= most]
    logs, rounds = complete_rounds(choice.values, ids, choice.processes)
    found = separation(logs, ids.index(chosen), rounds=len(rounds), execution=choice.execution)
    if not found.missing:
        return found
    every = (statistics.fmean(choice.points[id_].seconds.values()) for id_ in choice.values)
    return found.model_copy(update={"missing_s": found.missing * sum(every)})


def _against_defaults(
    choice: Choice, chosen: str
) -> tuple[str | None, tuple[float, float, float] | None]:
    """Returns the point with Orbax's defaults, and the ratio to it over common rounds."""
    asynchronous = choice.points[chosen].point.options.get("async_enabled")
    for id_, observed in choice.points.items():
        same = observed.point.options.get("async_enabled") == asynchronous
        if not (same and orbax_code.is_default(observed.point)):
            continue
        if id_ == chosen or id_ not in choice.values:
            return id_, None
        found = ratio_of(choice.values[chosen], choice.values[id_], choice.processes)
        ratio, low, high = (None,) * 3 if found is None else found.ratio()
        if ratio is None or low is None or high is None:
            return id_, None
        return id_, (ratio, low, high)
    return None, None


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


def remarks(
    points: Sequence[Observed], choice: Choice, chosen: str | None, *, memory: bool
) -> Iterator[model.Remark]:
    """Yields the doubts about the repeats behind a ranking; `memory` is whether it counts."""
    if flagged := [point for point in points if point.flagged]:
        without, ahead = _without(choice, chosen)
        flags = [flag for of in flagged for found in of.flagged.values() for flag in found]
        yield model.Remark(
            kind="flagged",
            points=tuple(point.point.name for point in flagged),
            repeats=sum(len(point.flagged) for point in flagged),
            flags=tuple(flag for at, flag in enumerate(flags) if flag not in flags[:at]),
            without=without,
            ahead=ahead,
        )
    if retried := [point for point in points if point.retried]:
        names = tuple(point.point.name for point in retried)
        repeats = sum(len(point.retried) for point in retried)
        yield model.Remark(kind="retried", points=names, repeats=repeats)
    for word in VERIFIED_WORDS:
        alike = [point.point.name for point in points if point.verified and point.weakest == word]
        if alike and word not in _TRUSTED:
            yield model.Remark(kind="not verified", points=tuple(alike), verified=word)
    reused = [each.point.name for each in points if each.point.conditions.host_memory == "reused"]
    if memory and reused:
        yield model.Remark(kind="memory reused", points=tuple(reused))


def _without(
    choice: Choice, chosen: str | None
) -> tuple[Literal["same", "behind", "nothing left"], str]:
    """Returns whether the answer would be the same without flagged repeats, or what is ahead."""
    left = {
        id_: {at: v for at, v in of.items() if at not in choice.points[id_].flagged}
        for id_, of in choice.values.items()
    }
    ranked = rank(left, choice.processes)
    place = next((each for each in ranked if each.point_id == chosen), None)
    if place is None:
        return "nothing left", ""
    if place.tied is False:
        return "behind", choice.points[ranked[0].point_id].point.name
    return "same", ""


def unmeasured(
    points: Sequence[Observed], varied: Mapping[str, Sequence[Any]], info: RunInfo
) -> model.Unmeasured:
    """Returns the limits of what a case says.

    Returns:
        The options that did not vary, the measures and points without a value, the combinations
        that were skipped, and whether all of it was measured on CPUs.
    """
    point = points[0].point
    known = {**orbax_code.orbax_options(point), **point.given_options} or point.options
    measured = {measure for each in points for measure in each.values}
    platforms = {each.platform for each in points if each.platform}
    return model.Unmeasured(
        options={name: setting for name, setting in known.items() if name not in varied},
        measures=tuple(measure for measure in MEASURES if measure not in measured),
        points=tuple(each.point.name for each in points if not each.rounds),
        skipped=tuple(skip.point.name for skip in info.expansion.skipped),
        cpu_devices=platforms == {"cpu"},
    )
