"""The answer of a choice in a sentence: the best settings, or the tie and what decides it."""

from typing import Any, Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.best import model
from orbax_bench_core.analysis.best.observations import acts_on
from orbax_bench_core.analysis.best.ranking import FEWEST
from orbax_bench_core.analysis.names import SPOKEN, setting_text
from orbax_bench_core.errors import listed
from orbax_bench_core.records import OverlapFinder

_CACHES: Final = {"warm": "warm ", "cold": "cold ", "mixed": "warm and cold "}
_WHY: Final = {
    "none yet": "it has no repeat yet",
    "not the goal": "no repeat of it has measured the goal",
    "memory unknown": "its peak memory is unknown",
    "memory": "its peak memory is above the bound",
}
NOTHING: Final = "NOTHING TO CHOOSE"


def best_line(best: model.Best) -> str:
    """Returns the answer for the first case in a line, and how many cases there are."""
    return headline(best).said if best.cases else ""


def headline(best: model.Best) -> pages.Callout:
    """Returns the answer for the first case, and how many more there are."""
    if not best.cases:
        return pages.Callout(NOTHING, "no two points of the run do the same work")
    case = best.cases[0]
    answer = answer_of(case, best)
    none = answer.word == NOTHING
    idle = [] if none else [name for name in case.options if not acts_on(name, best.goal)]
    shared = OverlapFinder.warning(case.not_alone, "this choice")
    more = pages.count(len(best.cases) - 1, "more case") if len(best.cases) > 1 else ""
    cannot = f"{listed(map(pages.code, idle))} cannot change it" if idle else ""
    parts = (answer.text, cannot, _not_chosen(case, best), more)
    said = "; ".join(filter(None, parts))
    return pages.Callout(answer.word, f"{said} ({shared})" if shared else said, answer.role)


def answer_of(case: model.Case, best: model.Best) -> pages.Callout:
    """Returns the answer of a case, of which options that cannot change the goal are no part."""
    goal, found, places = goal_words(case.ranking), case.recommendation, case.ranking.places
    if found is None:
        why = "".join(f": {left.name}: {why_left_out(left)}" for left in case.left_out[:1])
        return pages.Callout("NONE", f"no point can be recommended for {goal}{why}", "bad")
    settings = {point.point_id: settings_of(point, best.goal) for point in case.points}
    own = next(place for place in places if place.point_id == found.point_id)
    chosen, took = pages.code(settings[own.point_id]), value(best.goal, own.median)
    if not settings[own.point_id]:
        varied = listed(map(pages.code, case.options))
        return pages.Callout(NOTHING, f"{varied or 'no option that varies'} cannot change {goal}")
    others = [place for place in places if settings[place.point_id] != settings[own.point_id]]
    if not others:
        return pages.Callout(NOTHING, f"only {chosen} can be chosen for {goal}: {took}")
    gain = _against_defaults(case, found, best.goal)
    rivals = {settings[place.point_id] for place in others if place.tied is not False}
    if not rivals:
        after = others[0]
        if found.default_point != after.point_id or not gain:
            changed = pages.change(after.ratio or 1.0, after.low, after.high)
            gain = f"{gain}; the next settings take {changed}"
        return pages.Callout("BEST", f"{chosen} for {goal}, {took}{gain}", "good")
    if all(place.tied is None for place in others):
        following = value(best.goal, others[0].median)
        said = f"{chosen} took {took} for {goal}, the next {following}"
        return pages.Callout("UNDECIDED", f"{said}, which {_not_told(case, best)}", "unsure")
    ties = {place.point_id: place.median for place in places if place.tied is not False}
    ends = (value(best.goal, end) for end in (min(ties.values()), max(ties.values())))
    total = len({settings[place.point_id] for place in places})
    tied = (
        f"{len(rivals) + 1} of {total} settings for {goal} cannot be told apart, "
        f"{' to '.join(dict.fromkeys(ends))}"
    )
    if found.default_point in ties and found.default_point != found.point_id:
        gain = ", and Orbax's defaults tie with it"
    return pages.Callout(
        "TIE", f"{tied}; take {chosen}, {took}{gain}; {to_decide(found.confidence)}", "unsure"
    )


def _not_chosen(case: model.Case, best: model.Best) -> str:
    """Returns how many settings cannot be chosen, and why the first cannot; empty for none."""
    if case.recommendation is None or not case.left_out:
        return ""
    # The report has the whole error.
    left = case.left_out[0].model_copy(update={"error": ""})
    count = pages.count(len(case.left_out), "setting")
    (point,) = (each for each in case.points if each.point_id == left.point_id)
    name = settings_of(point, best.goal)
    return (
        f"{count} cannot be chosen: {f'{pages.code(name)}: ' if name else ''}{why_left_out(left)}"
    )


def _against_defaults(case: model.Case, found: model.Recommendation, goal: model.Goal) -> str:
    """Returns the gain over Orbax's defaults, with both medians, as the end of a sentence."""
    if found.default_point == found.point_id:
        return ", as Orbax does by default"
    medians = {place.point_id: place.median for place in case.ranking.places}
    if found.against_defaults is None or found.default_point not in medians:
        return ""
    before, after = medians[found.default_point], medians[found.point_id]
    return (
        f", {pages.change(*found.against_defaults)} against Orbax's defaults "
        f"({value(goal, before)} → {value(goal, after)})"
    )


def _not_told(case: model.Case, best: model.Best) -> str:
    if not best.interleaved:
        return (
            "says nothing, because repeats were taken point after point (order: sequential) and "
            "the machine may have changed meanwhile"
        )
    processes = pages.count(case.ranking.processes, "worker process", "worker processes")
    return f"rounds in {processes} cannot tell apart: that takes {FEWEST}"


def to_decide(found: model.Confidence) -> str:
    """Returns the rounds after which no other point is over 5 % better; if dear, what holds now."""
    if found.risk is None:
        return f"to decide takes {FEWEST} worker processes that measure both"
    if found.missing == 0:
        risk = "below 1 %" if found.risk < 0.01 else f"up to {pages.percent(found.risk)}"
        return f"the risk that another is over 5 % better is {risk}"
    if found.missing is not None and found.is_cheap:
        return f"about {found.missing:,} more rounds would decide"
    if found.within is None:
        return "to decide takes far more rounds than it is worth"
    return f"no other is over {pages.share(found.within)} better, at a risk of 5 %"


def why_left_out(left: model.LeftOut) -> str:
    """Returns why a point cannot be recommended, in words."""
    if left.why == "failed":
        error = f": {left.error}" if left.error else ""
        return f"{left.count} of {pages.count(left.total, 'repeat')} did not pass{error}"
    if left.why == "few rounds":
        return f"it has {left.count} of {left.total} rounds only"
    return _WHY[left.why]


def goal_words(ranking: model.Ranking) -> str:
    """Returns a goal in words, with the state of the page cache that its loads met."""
    weights, cache = ranking.goal.weights, _CACHES.get(ranking.cache, "")
    if len(weights) == 1:
        name = next(iter(weights))
        return f"{cache}{SPOKEN.get(name, pages.code(name))}"
    parts = (f"{pages.share(weight)} {name}" for name, weight in weights.items())
    return f"the weighted geometric mean ({', '.join(parts)})"


def value(goal: model.Goal, number: float) -> str:
    """Returns a value of a goal with its unit."""
    if goal.unit == "s":
        return pages.seconds(number)
    return pages.num_bytes(number) if goal.unit == "B" else pages.digits(number)


def settings_of(point: model.PointInfo, goal: model.Goal | None = None) -> str:
    """Returns the options that differ between the points of a case and can change the goal."""
    return ", ".join(
        option_text(name, setting)
        for name, setting in point.options.items()
        if goal is None or acts_on(name, goal)
    )


def option_text(name: str, setting: Any) -> str:
    """Returns an option with its value, as a suite has them: `use_ocdbt=true`."""
    return f"{name}={setting_text(setting)}"
