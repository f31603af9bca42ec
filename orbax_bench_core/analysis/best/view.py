"""Choice of options for people: which to take, what that gains, what ties with it, and why."""

import functools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.best import model
from orbax_bench_core.analysis.best.factorial import MOST_COLUMNS
from orbax_bench_core.analysis.best.headline import (
    NOTHING,
    answer_of,
    goal_words,
    headline,
    option_text,
    settings_of,
    to_decide,
    value,
    why_left_out,
)
from orbax_bench_core.analysis.best.observations import acts_on
from orbax_bench_core.analysis.best.orbax_code import why_no_code
from orbax_bench_core.analysis.best.ranking import FEWEST
from orbax_bench_core.analysis.best.reasons import SENTENCES
from orbax_bench_core.analysis.names import setting_text
from orbax_bench_core.analysis.page_cache import other_cache
from orbax_bench_core.errors import command, listed
from orbax_bench_core.reasons import in_words
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
    said = f"Run {best.run_id}. Level of ties and intervals: {pages.share(best.level)}."
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
    word, report = answer_of(case, best).word, command("report", place, "--details")
    asked = [] if best.goal.text == "save" else ["--goal", best.goal.text]
    bound = best.peak_memory_bytes
    if found is None and bound is not None:
        return pages.Code(command("best", place, *asked), "Without the bound on memory:")
    if found is None:
        return pages.Code(report, "The report has every failure, with its traceback.")
    if word == NOTHING:
        return pages.Code(report, "Every operation of every point.")
    asked += [] if bound is None else ["--peak-memory", str(bound)]
    if code:
        return pages.Code(command("best", place, *asked, "--details"), "What each option does.")
    run = ("run", best.suite_file, *best.flags, "--output-directory")
    if word == "UNDECIDED" and not best.interleaved and best.suite_file:
        other = (f"{place}-interleaved", "--override", "execution.order=interleaved")
        return pages.Code(command(*run, *other), "Rounds that measure every point in turn decide.")
    missing = found.confidence.missing if found.confidence.is_cheap else None
    if word == "UNDECIDED" and best.interleaved:
        missing = math.ceil(case.rounds * FEWEST / case.ranking.processes) - case.rounds or 1
    if word in ("UNDECIDED", "TIE") and missing and best.suite_file:
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
    others = f"{pages.count(more, 'more setting')}: see the details." if more > 0 else ""
    return (
        _bars(case, best.goal),
        first,
        pages.Text(others, "dim"),
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
    """Returns the changes of each point to the recommended one, by its id.

    All settings of each would fill a phone.
    """
    points = {point.point_id: point.options for point in case.points}
    chosen = None if case.recommendation is None else points[case.recommendation.point_id]
    names = {}
    for id_, options in points.items():
        changed = [
            option_text(name, options[name])
            for name in _acting(case, goal)
            if chosen is None or options[name] != chosen[name]
        ]
        names[id_] = ", ".join(changed) or ("take" if options is chosen else "the same")
    return names


def _cases(best: model.Best) -> pages.Table:
    rows = []
    for case in best.cases:
        answer, found = answer_of(case, best), case.recommendation
        points = {point.point_id: settings_of(point, best.goal) for point in case.points}
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
        f"Medians for {goal_words(case.ranking)}{change}",
        "; ".join(said) or "no point can be chosen",
        pages.axis("median", 0, 1.3 * longest, write),
        pages.named_axis(names[::-1] or [""]),
        (
            pages.Mark("bar", tuple(bars[True]), "c1", "best or tied"),
            pages.Mark("bar", tuple(bars[False]), "dim", "behind"),
            pages.Mark("whisker", tuple(whiskers), "plain", "interval against the smallest"),
        ),
        pages.rows_height(names),
    )


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
        settings = [setting_text(options[name]) for name in names]
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
        title = f"Settings by {goal_words(ranking)}, in {ranking.processes} worker processes"
        yield pages.Details(title, (_ranking(case, ranking, _MOST_ROWS),))
    remarks = [f"{_doubt(each)}: {listed(each.points)}" for each in case.remarks]
    remarks += filter(None, [OverlapFinder.warning(case.not_alone, "this choice")])
    yield pages.Details("Doubts", (pages.Text(items=tuple(remarks)),))
    left = (
        pages.Row(
            (
                each.name,
                why_left_out(each),
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
        f"{pages.code(option_text(each.option, each.value))} instead of {json.dumps(each.default)}"
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
    noise = "" if sure.noise is None else f", at a noise of {pages.share(sure.noise)}"
    yield f"risk that another is over 5 % better: {pages.share(sure.risk)}, from {over}{noise}"
    if sure.within is not None:
        yield f"no other is over {pages.share(sure.within)} better, at a risk of 5 %"
    if sure.missing and sure.missing_s is not None:
        took = pages.wait(sure.missing_s / 60)
        yield f"about {sure.missing:,} more rounds would decide, which take {took}"
    else:
        yield to_decide(sure)


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
                ", ".join(map(setting_text, each.values)),
                ", ".join(map(setting_text, each.against)),
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
        f"{option_text(each.options[0], each.values[0])} over {setting_text(each.against[0])}"
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
        pages.axis("factor, and its 95 % interval", low, high, "{:g}x".format, log=True),
        pages.named_axis(names[::-1]),
        (line, *marks),
        pages.rows_height(names),
    )


def _front(case: model.Case) -> Iterator[pages.Element]:
    """Yields the medians of all measures, and which points no other beats in all of them."""
    measures = list(dict.fromkeys(name for point in case.points for name in point.medians))
    ordered = sorted(case.points, key=lambda point: point.point_id not in case.front)

    rows = tuple(
        pages.Row(
            (
                *(_measured(measure, point.medians) for measure in measures),
                "–" if point.files is None else str(point.files),
                "yes" if point.point_id in case.front else "–",
            ),
            pages.code(settings_of(point)),
        )
        for point in ordered[:_MOST_ROWS]
    )
    headings = (*(f"{measure}#" for measure in measures), "files#", "front")
    if len(case.front_of) > 1:
        yield pages.Text(f"The front is that of {', '.join(case.front_of)}.")
    yield pages.Table(pages.columns(*headings), rows)


def _measured(measure: str, medians: Mapping[str, float]) -> str:
    return value(model.Goal.of(measure), medians[measure]) if measure in medians else "–"


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
        flags = listed([in_words(SENTENCES, flag) for flag in remark.flags])
        return f"{repeats}{points} had {flags}; {without[remark.without]}"
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
    ranges = (f"{name}: {', '.join(map(setting_text, of))}" for name, of in case.options.items())
    yield f"other values than {'; '.join(ranges)}"
    if lacking.options:
        settings = [pages.code(option_text(name, at)) for name, at in lacking.options.items()]
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
