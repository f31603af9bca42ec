"""Choice of options for people: which to take, what that gains, what ties with it, and why."""

import functools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.best import model
from orbax_bench_core.analysis.best.factorial import MOST_COLUMNS, MOST_ROUNDS
from orbax_bench_core.analysis.best.observations import acts_on
from orbax_bench_core.analysis.best.orbax_code import why_no_code
from orbax_bench_core.analysis.best.ranking import FEWEST
from orbax_bench_core.analysis.page_cache import other_cache
from orbax_bench_core.errors import command, listed
from orbax_bench_core.records import VERIFIED_WORDS, OverlapFinder

READING: Final = """\
Settings are compared within a case: same benchmark, checkpoint, mesh, processes and page cache.
Repeats are interleaved, so settings are paired by round: what slows a round down cancels. The \
rounds of one worker process count as one, because what an option does differs from process to \
process, by 4 to 7 % where that was measured.
Tied: a paired t-test of log values over the processes, against the smallest median, with Holm's \
correction over all settings, does not tell the two apart, or they are less than 1 % apart. The \
interval is what this test does not reject. It may be looked at after every round: the level is \
that of all looks together. The true best is among the ties in 95 % of sweeps or more.
Effect: the factor that one value of an option has on the goal, averaged over all other options. \
Pair: by which factor that effect changes with another option. It matters if the test tells it \
from 1 with all contrasts of its kind in mind (Holm, 5 %).
The recommendation is the tie with the smallest mean; of those within 1 % of it that of the fewest \
bytes, then files, then changes to Orbax's defaults.
Risk: the chances of all other settings to be over 5 % better, added up; an upper bound. The \
rounds that are missing are those after which it would be 5 %, if the means stayed where they are.
Pareto front: no other setting is as good in all of the measures and better in one, by medians."""
"""Reading aid, one line each."""

_GOALS: Final = {
    "blocking": "blocking saves",
    "save": "saves",
    "load": "loads",
    "bytes": "bytes on storage",
    "memory": "peak memory",
    "step_p99": "the 99th percentile of training steps",
    "step_max": "the longest training step",
    "recovery": "recoveries",
}
_CACHES: Final = {"warm": "warm ", "cold": "cold ", "mixed": "warm and cold "}
_WHY: Final = {
    "none yet": "it has no repeat yet",
    "not the goal": "no repeat of it has measured the goal",
    "memory unknown": "its peak memory is unknown",
    "memory": "its peak memory is above the bound",
}
_LINES: Final = 12
"""Lines of a screen that settings, code, doubts and the answer share."""
_COLUMNS: Final = 78
_MOST_ROWS: Final = 20
_MOST_DRAWN: Final = 8
_MOST_CASES: Final = 10
"""Cases in full on a page: one with hundreds could not be opened."""
_MOST_EFFECTS: Final = 12
_WIDEST: Final = 44
"""Characters of the names of options that are headings of columns; longer ones stand in cells."""
_MOST_MISSING: Final = 1000
"""More rounds than these are no advice."""


def best_line(best: model.Best) -> str:
    """Returns the answer for the first case in a line, and how many cases there are."""
    return headline(best).said if best.cases else ""


def headline(best: model.Best) -> pages.Callout:
    """Returns the answer for the first case, and how many more there are."""
    if not best.cases:
        return pages.Callout("NOTHING TO CHOOSE", "no two points of the run do the same work")
    case = best.cases[0]
    answer = _answer(case, best)
    idle = [pages.code(name) for name in case.options if not acts_on(name, best.goal)]
    shared = OverlapFinder.warning(case.not_alone, "this choice")
    more = pages.count(len(best.cases) - 1, "more case") if len(best.cases) > 1 else ""
    parts = (answer.text, f"{listed(idle)} cannot change it" if idle else "", more)
    said = "; ".join(filter(None, parts))
    return pages.Callout(answer.word, f"{said} ({shared})" if shared else said, answer.role)


def _answer(case: model.Case, best: model.Best) -> pages.Callout:
    """Returns the answer of a case, of which options that cannot change the goal are no part."""
    goal, found, places = _of_goal(case.ranking), case.recommendation, case.ranking.places
    if found is None:
        why = "".join(f": {left.name}: {_why(left)}" for left in case.left_out[:1])
        return pages.Callout("NONE", f"no point can be recommended for {goal}{why}", "bad")
    settings = {point.point_id: _settings(point, best.goal) for point in case.points}
    own = next(place for place in places if place.point_id == found.point_id)
    chosen, took = pages.code(settings[own.point_id]), value(best.goal, own.median)
    if not settings[own.point_id]:
        return pages.Callout("NOTHING TO CHOOSE", f"no option that varies can change {goal}")
    others = [place for place in places if settings[place.point_id] != settings[own.point_id]]
    if not others:
        return pages.Callout("NOTHING TO CHOOSE", f"only {chosen} can be chosen for {goal}: {took}")
    gain = _against_defaults(case, found, best.goal)
    rivals = {settings[place.point_id] for place in others if place.tied is not False}
    if not rivals:
        rest = next(place for place in others)
        least = min((place for place in others if place.ratio), key=lambda one: one.ratio or 0.0)
        if found.default_point != rest.point_id or not gain:
            changed = pages.change(least.ratio or 1.0, least.low, least.high)
            gain = f"{gain}; the next settings take {changed}"
        return pages.Callout("BEST", f"{chosen} for {goal}, {took}{gain}", "good")
    if all(place.tied is None for place in others):
        first, after = (value(best.goal, place.median) for place in (own, others[0]))
        return pages.Callout(
            "UNDECIDED",
            f"{chosen} took {first} for {goal}, the next {after}, which {_not_told(case, best)}",
            "unsure",
        )
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
        "TIE", f"{tied}; {chosen} took {took}{gain}; {_to_decide(found.confidence)}", "unsure"
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


def _to_decide(found: model.Confidence) -> str:
    """Returns the rounds needed to know that no other point is over 5 % better."""
    if found.risk is None:
        return f"to decide takes {FEWEST} worker processes that measure both"
    if found.missing == 0:
        risk = "below 1 %" if found.risk < 0.01 else f"up to {pages.percent(found.risk)}"
        return f"the risk that another is over 5 % better is {risk}"
    if found.missing is None:
        return f"over {MOST_ROUNDS:,} more rounds would decide"
    return f"about {found.missing:,} more rounds would decide"


def _why(left: model.LeftOut) -> str:
    if left.why == "failed":
        return f"{left.count} of {pages.count(left.total, 'repeat')} did not pass: {left.error}"
    if left.why == "few rounds":
        return f"it has {left.count} of {left.total} rounds only"
    return _WHY[left.why]


def _of_goal(ranking: model.Ranking) -> str:
    """Returns a goal in words, with the state of the page cache that its loads met."""
    weights, cache = ranking.goal.weights, _CACHES.get(ranking.cache, "")
    if len(weights) == 1:
        name = next(iter(weights))
        return f"{cache}{_GOALS.get(name, pages.code(name))}"
    parts = (f"{_share(weight)} {name}" for name, weight in weights.items())
    return f"the weighted geometric mean ({', '.join(parts)})"


def value(goal: model.Goal, number: float) -> str:
    """Returns a value of a goal with its unit."""
    if goal.unit == "s":
        return pages.seconds(number)
    return pages.num_bytes(number) if goal.unit == "B" else pages.digits(number)


def _settings(point: model.PointInfo, goal: model.Goal | None = None) -> str:
    """Returns what tells a point from the others of its case, if it can change the goal."""
    return ", ".join(
        _option(name, setting)
        for name, setting in point.options.items()
        if goal is None or acts_on(name, goal)
    )


def _option(name: str, setting: Any) -> str:
    return f"{name}={_setting(setting)}"


def _setting(setting: Any) -> str:
    return setting if isinstance(setting, str) else json.dumps(setting)


def _share(ratio: float) -> str:
    return f"{100 * ratio:.3g} %"


def best_document(best: model.Best, place: str, *, code: bool = False) -> pages.Document:
    """Returns a choice for people; with `code` its summary is how to follow it.

    Args:
        best: The choice.
        place: The run directory.
        code: Whether to show all code, and the entries of a suite.
    """
    cases = best.cases
    bound = best.peak_memory_bytes
    about = f"Best options of {best.suite}, {pages.count(len(cases), 'case')}"
    if bound is not None:
        about += f", at most {pages.num_bytes(bound)} of memory per process"
    if code:
        summary = tuple(each for case in cases for each in _code(case))
    elif len(cases) == 1:
        summary = _summary(cases[0], best)
    else:
        summary = (*[_bars(case, best.goal) for case in cases[:1]], _cases(best))
    parts = [(case, tuple(_details(case))) for case in cases[:_MOST_CASES]]
    details = parts[0][1] if len(parts) == 1 else tuple(pages.Details(c.name, d) for c, d in parts)
    said = f"Run {best.run_id}. Level of ties and intervals: {_share(best.level)}."
    return pages.Document(
        about=about,
        headline=headline(best),
        summary=summary,
        following=_following(best, place, code=code),
        details=(
            *details,
            pages.Details("How to read this", (pages.Text(items=tuple(READING.splitlines())),)),
            pages.Text(f"{said} `best.json` has all numbers for the goal by default.", "dim"),
        ),
    )


def _following(best: model.Best, place: str, *, code: bool) -> pages.Code | None:
    if not best.cases:
        return None
    case = best.cases[0]
    found = case.recommendation
    if found is None:
        said = "The report has every failure, with its traceback."
        return pages.Code(command("report", place, "--details"), said)
    asked = [] if best.goal.text == "save" else ["--goal", best.goal.text]
    bound = best.peak_memory_bytes
    asked += [] if bound is None else ["--peak-memory", str(bound)]
    if code:
        return pages.Code(command("best", place, *asked, "--details"), "What each option does.")
    run, word = ("run", best.suite_file, "--output-directory"), _answer(case, best).word
    if word == "UNDECIDED" and not best.interleaved and best.suite_file:
        other = (f"{place}-interleaved", "--override", "execution.order=interleaved")
        return pages.Code(command(*run, *other), "Rounds that measure every point in turn decide.")
    missing = found.confidence.missing
    if word == "UNDECIDED" and best.interleaved:
        missing = math.ceil(case.rounds * FEWEST / case.ranking.processes) - case.rounds or 1
    if word in ("UNDECIDED", "TIE") and missing and missing <= _MOST_MISSING and best.suite_file:
        rounds = f"num_repeats={case.rounds + missing}"
        said = "With more repeats it measures only the rounds that are missing."
        return pages.Code(command(*run, place, "--override", rounds), said)
    return pages.Code(command("best", place, *asked, "--code"), "All of the code, and a suite.")


def _summary(case: model.Case, best: model.Best) -> tuple[pages.Element, ...]:
    """Returns bars, as many settings as a screen has room for, doubts, and the shortest code."""
    found, answer = case.recommendation, headline(best).said
    doubts = "; ".join(map(_doubt, case.remarks))
    if len(doubts) > 2 * _COLUMNS:
        doubts = f"{pages.count(len(case.remarks), 'doubt')} about these repeats: see the details."
    short = "" if found is None else found.short_code
    taken = sum(math.ceil(len(text) / _COLUMNS) for text in (answer, doubts))
    room = _LINES - taken - len(short.splitlines()) - bool(short)
    wrapped = max((math.ceil(len(name) / 26) for name in _names(case, best.goal)), default=1)
    lines = 1 if _apart(_acting(case, best.goal)) else wrapped
    first = _ranking(case, case.ranking, max(1, room // lines), brief=True)
    more = len(case.ranking.places) - len(first.rows)
    return (
        _bars(case, best.goal),
        first,
        pages.Text(f"{more} more settings: see the details." if more > 0 else "", "dim"),
        pages.Text(doubts, "bad"),
        *([pages.Code(short, f"In {found.defaults_from}:")] if found and short else []),
    )


def _acting(case: model.Case, goal: model.Goal) -> list[str]:
    """Returns the options that vary and can change a goal."""
    return [name for name in case.options if acts_on(name, goal)]


def _apart(names: Sequence[str]) -> bool:
    """Returns whether options have a column each."""
    return sum(len(name) + 2 for name in names) <= _WIDEST


def _names(case: model.Case, goal: model.Goal) -> dict[str, str]:
    """Returns what each point changes of the recommended one, by its id.

    All settings of each would fill a phone.
    """
    points = {point.point_id: point.options for point in case.points}
    chosen = None if case.recommendation is None else points[case.recommendation.point_id]
    names = {}
    for id_, options in points.items():
        changed = [
            _option(name, options[name])
            for name in _acting(case, goal)
            if chosen is None or options[name] != chosen[name]
        ]
        names[id_] = ", ".join(changed) or ("take" if options is chosen else "the same")
    return names


def _cases(best: model.Best) -> pages.Table:
    rows = []
    for case in best.cases:
        answer, found = _answer(case, best), case.recommendation
        points = {point.point_id: _settings(point, best.goal) for point in case.points}
        chosen, own = "", "–"
        if found is not None:
            chosen = points[found.point_id]
            medians = {place.point_id: place.median for place in case.ranking.places}
            own = value(best.goal, medians[found.point_id])
        rows.append(pages.Row((case.name, pages.Cell(answer.word, answer.role), chosen, own)))
    return pages.Table(pages.columns("case`", "answer", "take`", "median#"), tuple(rows))


def _places(case: model.Case, ranking: model.Ranking) -> list[model.Ranked]:
    """Returns the places of a ranking, the recommended point first."""
    chosen = case.recommendation and case.recommendation.point_id
    if ranking is not case.ranking:
        return list(ranking.places)
    return sorted(ranking.places, key=lambda place: place.point_id != chosen)


def _bars(case: model.Case, goal: model.Goal) -> pages.Chart:
    """Returns the medians of settings as bars, with the interval of each against the smallest."""
    drawn = _places(case, case.ranking)[:_MOST_DRAWN]
    every = _names(case, goal)
    names = [every[place.point_id] for place in drawn]
    longest = max((place.median for place in drawn), default=1.0)
    least = min((place.median for place in case.ranking.places), default=1.0)
    bars: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    whiskers: list[tuple[float, float]] = []
    for row, place in enumerate(reversed(drawn)):
        bars[place.tied is not False] += [(0, row - 0.3), (place.median, row + 0.3)]
        if place.low is not None and place.high is not None:
            whiskers += [(least * place.low, row), (least * place.high, row)]
    said = (f"{name} {value(goal, place.median)}" for name, place in zip(names, drawn, strict=True))
    write = functools.partial(value, goal)
    change = "" if case.recommendation is None else "; rows say what they change of the one to take"
    return pages.Chart(
        f"Medians for {_of_goal(case.ranking)}{change}",
        "; ".join(said) or "no point can be chosen",
        pages.axis("median", 0, 1.3 * longest, write),
        pages.named_axis(names[::-1] or [""]),
        (
            pages.Mark("bar", tuple(bars[True]), "c1", "best or tied"),
            pages.Mark("bar", tuple(bars[False]), "dim", "behind"),
            pages.Mark("whisker", tuple(whiskers), "plain", "interval against the smallest"),
        ),
        _height(names),
    )


def _height(names: Sequence[str]) -> int:
    """Returns the height of a chart whose rows have names, which a phone wraps."""
    lines = max((math.ceil(len(name) / 17) for name in names), default=1)
    return 20 + max(30, 17 * lines) * len(names)


def _ranking(
    case: model.Case, ranking: model.Ranking, most: int, *, brief: bool = False
) -> pages.Table:
    """Returns the first places of a ranking; a brief table names options that act on its goal."""
    points = {point.point_id: point for point in case.points}
    names = _acting(case, ranking.goal) if brief else list(case.options)
    apart, changes = _apart(names), _names(case, ranking.goal)
    chosen = case.recommendation and case.recommendation.point_id
    rows = []
    for place in _places(case, ranking)[:most]:
        options = points[place.point_id].options
        settings = [_setting(options[name]) for name in names]
        if not apart and brief:
            settings = ["–" if place.point_id == chosen else changes[place.point_id]]
        elif not apart:
            pairs = zip(names, settings, strict=True)
            settings = [", ".join(f"{name}={setting}" for name, setting in pairs)]
        cells: list[str | pages.Cell] = [
            _standing(case, ranking, place),
            *settings,
            value(ranking.goal, place.median),
            "–" if place.ratio is None else pages.change(place.ratio, place.low, place.high),
        ]
        if not brief:
            cells += [str(place.rounds), place.point_id]
        rows.append(pages.Row(tuple(cells), dim=place.tied is False))
    together = "change`" if brief else "settings`"
    headings = [f"{name}`" for name in names] if apart else [together]
    more = () if brief else ("rounds#", "point`")
    columns = pages.columns("tie", *headings, "median#", "against the first#", *more)
    return pages.Table(columns, tuple(rows))


def _standing(case: model.Case, ranking: model.Ranking, place: model.Ranked) -> pages.Cell:
    if ranking.ties == (place.point_id,):
        return pages.Cell("best", "good")
    found = case.recommendation
    if ranking is case.ranking and found is not None and found.point_id == place.point_id:
        return pages.Cell("take", "good")
    return pages.Cell({True: "tied", False: "behind", None: "unknown"}[place.tied])


def _details(case: model.Case) -> Iterator[pages.Element]:
    rounds = pages.count(case.rounds, "round")
    heading = f"All settings, of {case.name}, {rounds} in {case.ranking.processes} worker processes"
    yield pages.Details(heading, (_ranking(case, case.ranking, _MOST_ROWS),))
    yield pages.Details("Code, and the entry of a suite", tuple(_code(case)))
    yield pages.Details("Why this one", (pages.Text(items=tuple(_reasons(case))),))
    yield pages.Details("What each option does", tuple(_effects(case.effects)))
    yield pages.Details("Medians of all measures", tuple(_front(case)))
    for ranking in case.rankings[1:]:
        title = f"Settings by {_of_goal(ranking)}, in {ranking.processes} worker processes"
        yield pages.Details(title, (_ranking(case, ranking, _MOST_ROWS),))
    remarks = [f"{_doubt(each)}: {listed(each.points)}" for each in case.remarks]
    remarks += filter(None, [OverlapFinder.warning(case.not_alone, "this choice")])
    yield pages.Details("Doubts", (pages.Text(items=tuple(remarks)),))
    left = (
        pages.Row(
            (
                each.name,
                _why(each),
                f"{each.count} of {each.total}",
                "–" if each.memory_bytes is None else pages.num_bytes(each.memory_bytes),
            )
        )
        for each in case.left_out
    )
    columns = pages.columns("point`", "why~", "repeats#", "peak memory#")
    yield pages.Details("Not chosen from", (pages.Table(columns, tuple(left)),))
    unknown = pages.Text(items=tuple(_unmeasured(case)))
    yield pages.Details("What the run says nothing about", (unknown,))


def _code(case: model.Case) -> Iterator[pages.Element]:
    """Yields code and suite of a recommendation, and how it differs from Orbax's defaults."""
    found = case.recommendation
    if found is None:
        return
    if found.code:
        yield pages.Code(found.code, f"Code for {case.name}, by the interface that was measured:")
    else:
        yield pages.Text(f"No code of Orbax: {why_no_code(found.benchmark)}.")
    yield pages.Code(found.suite, "The same as an entry of a suite:")
    by = {True: "as the suite has it", False: "the benchmark's own default"}
    differs = [
        f"{pages.code(_option(each.option, each.value))} instead of {json.dumps(each.default)}"
        + ("" if each.varied else f" ({by[each.given]}; nothing else was measured)")
        for each in found.differences
    ]
    if differs:
        yield pages.Text(f"Unlike the defaults of {found.defaults_from}:", items=tuple(differs))
    elif found.code:
        yield pages.Text(f"These are the defaults of {found.defaults_from}.")


def _reasons(case: model.Case) -> Iterator[str]:
    """Yields what speaks for the recommendation, and how sure it is."""
    found = case.recommendation
    if found is None:
        return
    by = {"mean": "the smallest mean of the ties", "size and defaults": "bytes, files and defaults"}
    yield f"chosen by {by[found.chosen_by]}; its values are {VERIFIED_WORDS[found.verified]}"
    if found.against_defaults is not None:
        yield f"against Orbax's defaults: {pages.change(*found.against_defaults)}"
    elif found.default_point is None and found.code:
        yield "what it gains over Orbax's defaults is unknown: no point of the sweep has them all"
    sure = found.confidence
    over = f"{pages.count(sure.rounds, 'round')} in {sure.processes} worker processes"
    if sure.risk is None:
        yield f"how surely it is near the best is unknown, from {over}: that takes {FEWEST}"
        return
    noise = "" if sure.noise is None else f", at a noise of {_share(sure.noise)}"
    yield f"risk that another is over 5 % better: {_share(sure.risk)}, from {over}{noise}"
    yield _to_decide(sure)


def _effects(effects: model.Effects) -> Iterator[pages.Element]:
    """Yields the contrasts of options, the largest first, as a drawing and as a table."""
    shown = sorted(effects.main, key=lambda each: -abs(math.log(each.ratio)))
    if shown:
        yield _effects_chart(shown[:_MOST_EFFECTS], effects.goal)
    pairs = {each.options for each in effects.interactions}
    matter = {each.options for each in effects.interactions if each.matters}
    rows = [
        pages.Row(
            (
                " and ".join(each.options),
                ", ".join(map(_setting, each.values)),
                ", ".join(map(_setting, each.against)),
                pages.change(each.ratio, each.low, each.high),
                "matters" if each.matters else "–",
            ),
            dim=not each.matters,
        )
        for each in (*shown, *sorted(effects.interactions, key=lambda each: not each.matters))
    ][: 2 * _MOST_ROWS]
    columns = pages.columns("option`", "value`", "against`", "effect#", "all in mind")
    yield pages.Table(columns, tuple(rows))
    over = f"{pages.count(effects.rounds, 'round')} in {effects.processes} worker processes"
    said = [f"Effects on {effects.goal.text}, from {over}."]
    if effects.unknown == "few processes":
        said.append(f"Effects take {FEWEST} worker processes in which every point has a value.")
    if effects.unknown == "too large":
        said.append(f"Effects of more than {MOST_COLUMNS} values or 5,000 points are not computed.")
    if effects.confounded:
        names = listed(map(pages.code, effects.confounded))
        said.append(f"No effect of its own, because they only vary with others: {names}.")
    if not effects.has_pairs:
        said.append("Not enough combinations were measured for pairs of options.")
    if pairs:
        count = pages.count(len(pairs), "pair")
        said.append(f"{len(matter)} of {count} of options matter next to the main effects.")
    yield pages.Text(items=tuple(said))


def _effects_chart(shown: Sequence[model.OptionContrast], goal: model.Goal) -> pages.Chart:
    """Returns main effects as ratios with their intervals, on a log scale; 1 is no effect."""
    names = [
        f"{_option(each.options[0], each.values[0])} over {_setting(each.against[0])}"
        for each in shown
    ]
    marks: list[pages.Mark] = []
    ends = [end for each in shown for end in (each.low, each.high)]
    for row, each in enumerate(reversed(shown)):
        tone: pages.Tone = "dim" if not each.matters else "good" if each.ratio < 1 else "bad"
        marks.append(pages.Mark("whisker", ((each.low, row), (each.high, row)), tone))
        marks.append(pages.Mark("tick", ((each.ratio, row),), tone))
    line = pages.Mark("line", ((1, -0.5), (1, len(shown) - 0.5)), "plain", dashed=True)
    said = (
        f"{name} {pages.change(each.ratio, each.low, each.high)}"
        for name, each in zip(names, shown, strict=True)
    )
    low, high = min(1.0, *ends) / 1.05, 1.05 * max(1.0, *ends)
    return pages.Chart(
        f"Effects on {goal.text}",
        "; ".join(said),
        pages.axis("factor, and its 95 % interval", low, high, _factor, log=True),
        pages.named_axis(names[::-1]),
        (line, *marks),
        _height(names),
    )


def _factor(ratio: float) -> str:
    return f"{ratio:g}x"


def _front(case: model.Case) -> Iterator[pages.Element]:
    """Yields the medians of all measures, and which points no other beats in all of them."""
    if len(case.front_of) > 1:
        yield _front_chart(case, case.front_of[:2])
    measures = list(dict.fromkeys(name for point in case.points for name in point.medians))
    ordered = sorted(case.points, key=lambda point: point.point_id not in case.front)

    rows = tuple(
        pages.Row(
            (
                *(_measured(measure, point.medians) for measure in measures),
                "–" if point.files is None else str(point.files),
                "yes" if point.point_id in case.front else "–",
            ),
            pages.code(_settings(point)),
        )
        for point in ordered[:_MOST_ROWS]
    )
    headings = (*(f"{measure}#" for measure in measures), "files#", "front")
    if len(case.front_of) > 1:
        yield pages.Text(f"The front is that of {', '.join(case.front_of)}.")
    yield pages.Table(pages.columns(*headings), rows)


def _measured(measure: str, medians: Mapping[str, float]) -> str:
    return value(model.Goal.of(measure), medians[measure]) if measure in medians else "–"


def _front_chart(case: model.Case, measures: Sequence[str]) -> pages.Chart:
    """Returns the points by two measures, with those on the front apart."""
    chosen = case.recommendation and case.recommendation.point_id
    places: dict[str, list[tuple[float, float]]] = {"others": [], "on the front": [], "take": []}
    for point in case.points:
        if all(measure in point.medians for measure in measures):
            kind = "on the front" if point.point_id in case.front else "others"
            kind = "take" if point.point_id == chosen else kind
            places[kind].append((point.medians[measures[0]], point.medians[measures[1]]))
    every = [place for of in places.values() for place in of]
    axes = []
    for at, measure in enumerate(measures):
        write = functools.partial(value, model.Goal.of(measure))
        ends = [place[at] for place in every]
        axes.append(pages.axis(measure, min(ends) / 1.1, 1.1 * max(ends), write, log=True))
    tones: tuple[pages.Tone, ...] = ("dim", "c1", "good")
    return pages.Chart(
        f"{measures[1].capitalize()} by {measures[0]}, medians",
        f"{len(case.front)} of {len(every)} points are on the front",
        axes[0],
        axes[1],
        tuple(
            pages.Mark("dots", tuple(at), tone, name, hollow=name == "others")
            for (name, at), tone in zip(places.items(), tones, strict=True)
        ),
    )


def _doubt(remark: model.Remark) -> str:
    """Returns a doubt about repeats in words."""
    points = pages.count(len(remark.points), "point")
    repeats = f"{pages.count(remark.repeats, 'repeat')} of " if remark.repeats else ""
    if remark.kind == "flagged":
        without = {
            "same": "without them the recommendation is still best or tied",
            "behind": f"without them {remark.ahead} would be ahead: do not trust the choice",
            "nothing left": "without them nothing is left of the recommended point",
        }
        return f"{repeats}{points} had {listed(remark.flags)}; {without[remark.without]}"
    if remark.kind == "retried":
        return f"{repeats}{points} passed only when tried again, and count"
    if remark.kind == "not verified":
        return f"{repeats}{points} {VERIFIED_WORDS[remark.verified]}"
    return (
        f"peak memory of {repeats}{points} is an upper bound, because a worker keeps what it freed "
        "for others (host_memory: reused)"
    )


def _unmeasured(case: model.Case) -> Iterator[str]:
    """Yields the limits of what a case says, a sentence each."""
    lacking = case.unmeasured
    ranges = (f"{name}: {', '.join(map(_setting, of))}" for name, of in case.options.items())
    yield f"other values than {'; '.join(ranges)}"
    if lacking.options:
        settings = [pages.code(_option(name, at)) for name, at in lacking.options.items()]
        yield f"not varied: {listed(settings, most=20)}"
    if lacking.measures:
        yield f"not measured: {', '.join(lacking.measures)}"
    if lacking.points:
        yield f"without a repeat that passed: {listed(lacking.points)}"
    if lacking.skipped:
        yield f"skipped by the suite: {listed(lacking.skipped)}"
    if lacking.cpu_devices:
        yield (
            "an accelerator: these are CPU devices, on which staging from device to host costs "
            "nothing like there, and `blocking` says little about it"
        )
    if (caches := {ranking.cache for ranking in case.rankings}) and (said := other_cache(caches)):
        yield said.rstrip(".")
    yield "other checkpoints, meshes, storage and numbers of hosts than those of this case"
