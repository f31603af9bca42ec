"""Recommendation: the point that is chosen among the ties, and what speaks for it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from orbax_bench_core.analysis.best.confidence import Separation, separation
from orbax_bench_core.analysis.best.factorial import Factorial
from orbax_bench_core.analysis.best.model import (
    Confidence,
    Difference,
    Goal,
    Ranking,
    Recommendation,
)
from orbax_bench_core.analysis.best.observations import Observed
from orbax_bench_core.analysis.best.orbax_code import (
    RELEASE,
    as_code,
    as_suite,
    differing,
    is_default,
    orbax_options,
    other_code,
    why_no_code,
)
from orbax_bench_core.analysis.best.ranking import complete_rounds, ratio_of
from orbax_bench_core.analysis.best.words import evidence
from orbax_bench_core.records import VERIFIED_WORDS

EQUAL: Final = math.log(1.01)
"""Ties whose estimates are within 1 % of the smallest are chosen among by bytes and files."""

_SAME_BYTES: Final = 1.01


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choice:
    """Facts that a recommendation is chosen from.

    Attributes:
        goal: The goal.
        points: All points of the case, by id.
        values: Values of the goal, by point that can be chosen, then by round.
        ranking: Their ranking.
        factorial: What the fit says; None where the means count.
        places: The points of the fit, in its order.
        varied: Names of what varies.
        paired: Whether rounds were interleaved.
    """

    goal: Goal
    points: Mapping[str, Observed]
    values: Mapping[str, Mapping[int, float]]
    ranking: Ranking
    factorial: Factorial | None
    places: tuple[str, ...]
    varied: tuple[str, ...]
    paired: bool


def recommend(choice: Choice) -> Recommendation:
    """Chooses among the ties: by the fit or else by the means, then by bytes, files and habit."""
    estimates = _estimates(choice)
    ties = [id_ for id_ in choice.ranking.ties if id_ in estimates]
    chosen, chosen_by = _chosen(choice, ties, estimates)
    observed = choice.points[chosen]
    confidence = _confidence(choice, chosen, estimates)
    against = _against_defaults(choice, chosen)
    return Recommendation(
        point_id=chosen,
        name=observed.point.name,
        chosen_by=chosen_by,
        code=as_code(observed.point),
        other_code=other_code(observed.point),
        why_no_code=why_no_code(observed.point),
        suite=as_suite(observed.point, observed.point.benchmark),
        differences=_differences(observed, choice.varied),
        defaults_from=RELEASE,
        against_defaults=against,
        confidence=Confidence(
            risk=confidence.risk,
            rounds=confidence.rounds,
            missing=confidence.missing,
            noise=confidence.noise,
        ),
        evidence=evidence(
            choice.ranking,
            chosen,
            confidence,
            against=against,
            has_default=any(is_default(point.point) for point in choice.points.values()),
            knows_orbax=bool(orbax_options(observed.point)),
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
        return files[id_], _habit(choice.points[id_]), estimates[id_]

    return min(equal, key=order), f"{by}; among those within 1 %, bytes, files and Orbax's defaults"


def _habit(observed: Observed) -> int:
    """Returns how many options are not as Orbax has them."""
    return len(differing(observed.point))


def _median(observed: Observed, measure: str) -> float:
    values = list(observed.values.get(measure, {}).values())
    return float(np.median(values)) if values else math.inf


def _confidence(choice: Choice, chosen: str, estimates: Mapping[str, float]) -> Separation:
    """Returns how surely the chosen point is within 5 % of the best.

    Points with fewer rounds than the chosen one are left aside; the others are compared in the
    rounds that all of them have.
    """
    fit = None if choice.factorial is None else choice.factorial.fit
    if not choice.paired:
        return Separation(risk=None, rounds=0, needed=None, noise=None)
    if fit is not None:
        places = [place for place, id_ in enumerate(choice.places) if id_ in choice.values]
        ids = [choice.places[place] for place in places]
    else:
        most = len(choice.values[chosen])
        ids = [id_ for id_, of in choice.values.items() if len(of) >= most]
    logs, _ = complete_rounds(choice.values, ids)
    at = ids.index(chosen)
    behind = np.array([estimates[id_] - estimates[chosen] for id_ in ids])
    spread = None if fit is None else fit.spread[places, choice.places.index(chosen)]
    if fit is None and len(logs):
        behind = logs.mean(axis=0) - logs.mean(axis=0)[at]
    return separation(behind, at, logs, spread=spread)


def _against_defaults(choice: Choice, chosen: str) -> tuple[float, float, float] | None:
    """Returns the ratio to the point with Orbax's defaults, over the rounds that both have."""
    for id_, observed in choice.points.items():
        same = _asynchronous(observed) == _asynchronous(choice.points[chosen])
        if is_default(observed.point) and same and id_ != chosen and id_ in choice.values:
            found = ratio_of(choice.values[chosen], choice.values[id_])
            if found.ratio is not None and found.low is not None and found.high is not None:
                return found.ratio, found.low, found.high
    return None


def _asynchronous(observed: Observed) -> Any:
    return observed.point.options.get("async_enabled")


def _differences(observed: Observed, varied: tuple[str, ...]) -> tuple[Difference, ...]:
    return tuple(
        Difference(
            option=name,
            value=observed.point.options[name],
            default=default,
            varied=name in varied,
            given=name in observed.point.given,
        )
        for name, default in differing(observed.point).items()
    )
