"""Sentences on the choice of options, the same in the terminal and on pages."""

import json
from collections.abc import Sequence
from typing import Any, Final

from orbax_bench_core.analysis.best import model
from orbax_bench_core.analysis.best.factorial import MOST_ROUNDS
from orbax_bench_core.analysis.best.observations import acts_on
from orbax_bench_core.analysis.best.ranking import FEWEST
from orbax_bench_core.document import count, digits, num_bytes, percent, seconds
from orbax_bench_core.errors import listed
from orbax_bench_core.records import OverlapFinder

READING: Final = """\
Points are compared within a case: same benchmark, checkpoint, mesh, processes and page cache.
Repeats are interleaved, so points are paired by round: what slows a round down cancels. The \
rounds of one worker process count as one, because what an option does differs from process to \
process: the ratio is the geometric mean over the processes.
Tied: a paired t-test of log values over the processes, against the point of the smallest median, \
with Holm's correction over all points, does not tell the point from it at the 5 % level, or it is \
less than 1 % behind. The interval is what this test does not reject. It may be looked at after \
every round: the level is that of all looks together. The true best is among the ties in 95 % of \
sweeps or more; more than one of them may be best.
Effect: the factor that one value of an option has on the goal, averaged over all other options. \
Pair: by which factor that effect changes with another option. "matters" has all contrasts of its \
kind in mind (Holm, 5 %).
The recommendation ("chosen" in the table) is one of the ties: by the fit of main effects and \
pairs where every point was measured and nothing speaks against the fit, else by the means. Among \
ties within 1 % bytes decide, then files, then the number of changes to Orbax's defaults.
Risk: the chances of all other points to be over 5 % better, added up; an upper bound. The rounds \
that are missing are those after which it would be 5 %, if the means stayed where they are.
Pareto front: no other point is as good in all of the measures and better in one, by medians."""
"""Reading aid, one line each."""

_MOST_LINES: Final = 8
"""Effects of a kind that a terminal shows."""

_GOALS: Final = {
    "blocking": "blocking time of a save",
    "save": "time of a save",
    "load": "time of a load",
    "bytes": "bytes on storage",
    "step_p99": "99th percentile of the steps of a training",
    "step_max": "longest step of a training",
    "memory": "peak memory of the host's process",
}


def best_line(best: model.Best) -> str:
    """Returns the answer for the first case in a sentence, and how many cases there are."""
    if not best.cases:
        return ""
    more = len(best.cases) - 1
    said = headline(best.cases[0], best.goal)
    return f"{said}; and {count(more, 'more case')}" if more else said


def goal_words(goal: model.Goal) -> str:
    """Returns the words for a goal."""
    if len(goal.weights) == 1:
        name = next(iter(goal.weights))
        return _GOALS.get(name, f"time of {name}")
    parts = (f"{percent(weight)} {name}" for name, weight in goal.weights.items())
    return f"weighted geometric mean ({', '.join(parts)})"


def value(goal: model.Goal, number: float) -> str:
    """Returns a value of a goal with its unit."""
    if goal.unit == "s":
        return seconds(number)
    return num_bytes(number) if goal.unit == "B" else digits(number)


def option(name: str, value: Any) -> str:
    """Returns an option with its value."""
    return f"{name}={setting(value)}"


def setting(value: Any) -> str:
    """Returns the value of an option."""
    return value if isinstance(value, str) else json.dumps(value)


def options(point: model.PointInfo) -> str:
    """Returns the text that tells a point from the others of its case."""
    return ", ".join(option(name, setting) for name, setting in point.options.items())


def acting_options(point: model.PointInfo, goal: model.Goal) -> str:
    """Returns the same without the options that cannot change a goal."""
    acting = {name: value for name, value in point.options.items() if acts_on(name, goal)}
    return options(point.model_copy(update={"options": acting}))


def interval(ratio: float, low: float | None, high: float | None) -> str:
    """Returns a ratio with its interval."""
    if low is None or high is None:
        return f"{ratio:.3f}x"
    return f"{ratio:.3f}x [{low:.3f}–{high:.3f}]"


def tie(place: model.Ranked) -> str:
    """Returns whether a point ties with the best, in a word."""
    return {True: "tied", False: "behind", None: "unknown"}[place.tied]


def ties_sentence(ranking: model.Ranking) -> str:
    """Returns how many points cannot be told from the one with the smallest median."""
    places = ranking.places
    if not places:
        return "no point can be chosen"
    first, rest = places[0], places[1:]
    total = len(places)
    if not rest:
        return "no other point can be chosen"
    unknown = sum(place.tied is None for place in rest)
    if unknown == len(rest):
        return (
            f"which of the {total} points tie is unknown: that takes {FEWEST} worker processes "
            f"that measure in interleaved rounds, and {ranking.processes} measured these"
        )
    tied = sum(place.tied is True for place in rest)
    base = (
        f"at the {percent(ranking.level)} level, over {count(first.rounds, 'round')} in "
        f"{count(ranking.processes, 'worker process', 'worker processes')}"
    )
    said = (
        f"{tied} of {total - 1} others tie with the {_first(ranking.goal)} {base}: any of them may "
        "be best"
        if tied
        else f"it alone is best of {total} points {base}"
    )
    return f"{said}; of {unknown} nobody knows" if unknown else said


def _first(goal: model.Goal) -> str:
    """Returns the title of the point with the smallest median while others may be better."""
    return "fastest seen" if goal.unit == "s" else "smallest seen"


def ranked_by(ranking: model.Ranking) -> str:
    """Returns the values that points are ranked by, and how many may equal the best."""
    cache = f" ({ranking.cache})" if ranking.cache else ""
    return f"By {goal_words(ranking.goal)}{cache}: {ties_sentence(ranking)}"


def effect(contrast: model.OptionContrast) -> str:
    """Returns a main effect in a line."""
    (name,), (new,), (old,) = contrast.options, contrast.values, contrast.against
    said = interval(contrast.ratio, contrast.low, contrast.high)
    return f"{option(name, new)} takes {said} of {option(name, old)}"


def interaction(contrast: model.OptionContrast) -> str:
    """Returns an interaction in a line."""
    (first, second), (one, other) = contrast.options, contrast.values
    said = interval(contrast.ratio, contrast.low, contrast.high)
    against = option(second, contrast.against[1])
    return (
        f"{option(first, one)} takes {said} as much with {option(second, other)} as with {against}"
    )


def risk_sentence(found: model.Confidence) -> str:
    """Returns how surely the recommended point is near the best, and what is missing."""
    if found.risk is None:
        return (
            f"how surely it is near the best is unknown: that takes {FEWEST} worker processes that "
            "measure two points or more in interleaved rounds"
        )
    said = f"risk that another point is over 5 % better: {_share(found.risk)}"
    if found.missing == 0:
        return said
    spread = "" if found.noise is None else f" at this noise of {percent(found.noise)}"
    more = f"over {MOST_ROUNDS:,}" if found.missing is None else f"about {found.missing:,}"
    return f"{said}; to bring it to 5 %{spread} takes {more} more rounds, after {found.rounds}"


def against_defaults(ratio: tuple[float, float, float]) -> str:
    """Returns the ratio to the point with Orbax's defaults."""
    return f"it takes {interval(*ratio)} of the point with Orbax's defaults"


def evidence(
    ranking: model.Ranking,
    chosen: str,
    confidence: model.Confidence,
    *,
    against: tuple[float, float, float] | None,
    has_default: bool,
    knows_orbax: bool,
    verified: str,
    paired: bool,
) -> tuple[str, ...]:
    """Returns the evidence for a recommendation, in sentences."""
    place = next(each for each in ranking.places if each.point_id == chosen)
    median = value(ranking.goal, place.median)
    said = [
        f"median {median} in {count(place.rounds, 'round')}",
        ties_sentence(ranking),
        risk_sentence(confidence),
        verified,
    ]
    if against is not None:
        said.append(against_defaults(against))
    elif knows_orbax and not has_default:
        said.append(
            "what it gains over Orbax's defaults is unknown: no point of the sweep has them all"
        )
    if not paired:
        said.append(
            "repeats were taken point after point (order: sequential), so that a drift of the "
            "machine looks like a difference between points; `order: interleaved` avoids that"
        )
    return tuple(said)


def headline(case: model.Case, goal: model.Goal) -> str:
    """Returns the answer of a case in a line: the best settings, or the tie and what decides it."""
    found, places = case.recommendation, case.ranking.places
    if found is None:
        return f"No point can be recommended for the {goal_words(goal)}"
    said = _answer(case, found, goal, places)
    if idle := [name for name in case.options if not acts_on(name, goal)]:
        said += f"; {listed(idle)} cannot change it"
    shared = OverlapFinder.warning(case.not_alone, "this choice")
    return f"{said} ({shared})" if shared else said


def is_decided(case: model.Case, goal: model.Goal) -> bool:
    """Returns whether one setting alone is best of several."""
    return len(_candidates(case, goal)) == 1 < len(case.ranking.places)


def _answer(
    case: model.Case, found: model.Recommendation, goal: model.Goal, places: Sequence[model.Ranked]
) -> str:
    """Returns the answer, of which the options that cannot change the goal are no part."""
    settings = {point.point_id: acting_options(point, goal) for point in case.points}
    candidates = _candidates(case, goal)
    chosen, first = settings[found.point_id], settings[places[0].point_id]
    wanted = goal_words(goal)
    if not chosen:
        return f"Nothing to choose for the {wanted}"
    if len(places) == 1:
        return f"Only one point can be chosen for the {wanted}: {chosen}"
    if len(candidates) == 1:
        return f"Best for the {wanted}: {chosen}"
    total = len({settings[place.point_id] for place in places})
    unknown = all(place.tied is None for place in places[1:])
    tie = "which are best is unknown" if unknown else f"{len(candidates)} of {total} settings"
    said = f"Tie for the {wanted}: {tie}; {_first(goal)}: {first}"
    if chosen != first:
        said += f"; recommended by {found.chosen_by}: {chosen}"
    return f"{said}; {_to_decide(found.confidence)}"


def _candidates(case: model.Case, goal: model.Goal) -> set[str]:
    """Returns the settings that may be best, or are."""
    may_be = set(case.ranking.ties)
    return {acting_options(point, goal) for point in case.points if point.point_id in may_be}


def _to_decide(found: model.Confidence) -> str:
    """Returns the rounds needed to know that no other point is over 5 % better."""
    if found.risk is None:
        return (
            f"to decide takes {FEWEST} rounds or more (num_repeats) in order: interleaved, in "
            f"{FEWEST} worker processes or more"
        )
    if found.missing == 0:
        return f"risk that another is over 5 % better: {_share(found.risk)}"
    if found.missing is None:
        return f"to decide would take over {MOST_ROUNDS:,} more rounds"
    rounds = found.rounds + found.missing
    return f"to decide takes about {found.missing:,} more rounds (--override num_repeats={rounds})"


def _share(risk: float) -> str:
    return "below 1 %" if risk < 0.01 else f"up to {percent(risk)}"


def effect_lines(case: model.Case) -> list[str]:
    """Returns main effects and pairs that matter, the largest first."""
    mains = sorted(case.effects.main, key=_size, reverse=True)
    lines = [effect(contrast) for contrast in mains[:_MOST_LINES]]
    pairs = [contrast for contrast in case.effects.interactions if contrast.matters]
    return lines + [
        interaction(each) for each in sorted(pairs, key=_size, reverse=True)[:_MOST_LINES]
    ]


def pairs_sentence(case: model.Case) -> str:
    """Returns how many pairs of options matter; empty without pairs."""
    pairs = {contrast.options for contrast in case.effects.interactions}
    if not pairs:
        return ""
    matter = {contrast.options for contrast in case.effects.interactions if contrast.matters}
    return f"{len(matter)} of {count(len(pairs), 'pair')} of options matter beside the main effects"


def other_pairs(effects: model.Effects) -> str:
    """Returns how many pairs of options do not matter; empty if all do."""
    pairs = {contrast.options for contrast in effects.interactions}
    others = pairs - {each.options for each in effects.interactions if each.matters}
    if not others:
        return ""
    more = count(len(others), "more pair" if len(others) < len(pairs) else "pair")
    verb = "shows" if len(others) == 1 else "show"
    return f"{more} of options {verb} no interaction that matters"


def difference_lines(found: model.Recommendation) -> list[str]:
    """Returns how a recommendation differs from what Orbax does by default."""
    by = {True: "as the suite has it", False: "the benchmark's own default"}
    return [
        f"{option(each.option, each.value)} instead of {json.dumps(each.default)}"
        + ("" if each.varied else f" ({by[each.given]}; nothing else was measured)")
        for each in found.differences
    ]


def _size(contrast: model.OptionContrast) -> float:
    return max(contrast.ratio, 1 / contrast.ratio) if contrast.ratio > 0 else 0.0
