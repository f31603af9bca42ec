"""The answer of a comparison in one sentence, the same in every place where it is told."""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeGuard

from orbax_bench_core import pages
from orbax_bench_core.analysis.names import shortened, spoken
from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict, VerdictReport
from orbax_bench_core.analysis.verdicts.reasons import why
from orbax_bench_core.config import ARMS, GateConfig
from orbax_bench_core.exit_codes import WORDS
from orbax_bench_core.gate import StallVerdict, Verdict, Word

_RANKS: Final[dict[Word, int]] = {"REGRESSION": 0, "INCONCLUSIVE": 1, "PASS": 2}
_SYSTEM_DOES: Final = {
    "save": "saves",
    "save_blocking": "returns from a save",
    "save_background": "writes in the background",
    "save_durable": "has a save on stable storage",
    "load": "loads",
}
_OR_MORE: Final = " or more"
_CLEARLY: Final = 0.1
"""Difference of two changes, in log time, below which a reader takes them for rounding."""
_MOST_TOLD: Final = 2
"""Points of a study that a headline names."""


def headline(report: VerdictReport) -> pages.Callout:
    """Returns the result of a comparison: its word, and one sentence."""
    word = stamped(report)
    role: pages.Role = "plain" if report.is_study else WORDS[report.word].role
    changes = report.exploratory
    said = [f"rules changed after the data ({changes})" if changes else "", _said(report)]
    if report.points and not report.is_study and apart(report):
        says = {"REGRESSION": ", so this is a warning", "PASS": ", so this is an indication"}
        beyond = (
            ", but runs of the same differ by less"
            if report.beyond_runs
            else says.get(report.word, "")
        )
        said.append(f"the two sides were measured apart{beyond}")
    if report.not_alone:
        said.append(f"{pages.count(report.not_alone, 'repeat')} not alone on the machine")
    return pages.Callout(word, "; ".join(filter(None, said)), role)


def stamped(judged: PointVerdict | VerdictReport) -> str:
    """Returns a word that nobody who sees it alone takes for a verdict when it is none."""
    word = "COMPARED" if judged.is_study else judged.word
    return f"{word}, exploratory" if judged.exploratory else word


def told(point: PointVerdict, gate: GateConfig) -> pages.Callout:
    """Returns the result of one point, as the headline tells that of a report."""
    role: pages.Role = "plain" if point.is_study else WORDS[point.word].role
    if point.is_study:
        text = _compared([point])
    elif point.word == "PASS":
        text = _all_passed([point], gate)
    else:
        text = (_regressed if point.word == "REGRESSION" else _undecided)(point, gate)
    return pages.Callout(stamped(point), text, role)


def operation_told(operation: OperationVerdict, point: PointVerdict, gate: GateConfig) -> str:
    """Returns the result of one operation in a sentence."""
    word = operation.verdict.word
    if point.is_study:
        return compared(operation, point)
    if word == "PASS":
        changed = _changed(operation)
        return f"{spoken(operation.operation)} are not slower by {bound(operation, gate)}{changed}"
    return _slower(operation) if word == "REGRESSION" else _open(operation, gate)


def tells_why(operation: OperationVerdict, point: PointVerdict) -> bool:
    """Returns whether `operation_told` has the reason of an operation, if there is one."""
    verdict = operation.verdict
    if point.is_study:
        return not is_real(verdict.ratio)
    return _unjudged(verdict) and verdict.endpoint != "stalls"


def worst_first(points: Sequence[PointVerdict]) -> list[PointVerdict]:
    """Returns points by verdict; among equals paired ones first, then those that failed."""

    def order(point: PointVerdict) -> tuple[object, ...]:
        nearest = nearest_to_trouble(point)
        trouble = (0, 0.0) if nearest is None else _trouble(nearest)
        return _RANKS[point.word], point.mode == "unpaired", not point.failed, trouble

    return sorted(points, key=order)


def nearest_to_trouble(point: PointVerdict) -> OperationVerdict | None:
    """Returns the primary operation with the worst verdict and then the highest ratio, if any."""
    return min(primary(point), key=_trouble, default=None)


def primary(point: PointVerdict) -> list[OperationVerdict]:
    """Returns the operations that decide about a point."""
    return [operation for operation in point.operations if operation.primary]


def bound(operation: OperationVerdict, gate: GateConfig) -> str:
    """Returns the slow-down that a PASS of an operation rules out, such as `15 % or more`."""
    rule = gate.rule(operation.operation)
    if operation.verdict.bound == "floor":
        return f"{pages.seconds(rule.min_effect_s)}{_OR_MORE}"
    return f"{pages.share(rule.margin)}{_OR_MORE}"


def is_real(value: float | None) -> TypeGuard[float]:
    """Returns whether a value is a ratio or a time that a scale has a place for."""
    return value is not None and math.isfinite(value) and value > 0


def change(verdict: Verdict) -> str:
    """Returns the change of an operation with its interval; a dash without a ratio."""
    if not is_real(verdict.ratio):
        return "–"
    return pages.change(verdict.ratio, verdict.low, verdict.high)


def medians(operation: OperationVerdict) -> list[str]:
    """Returns the median time of each arm, baseline first; a dash where an arm has none."""
    times = (operation.times.get(arm, ()) for arm in ARMS)
    return [pages.seconds(statistics.median(found)) if found else "–" for found in times]


def medians_disagree(operation: OperationVerdict) -> bool:
    """Returns whether medians clearly changed the other way than operations next to each other.

    Where noise is large both happen; in one sentence they would read as a mistake.
    """
    times = (operation.times.get(arm, ()) for arm in ARMS)
    before, after = (statistics.median(found) if found else None for found in times)
    ratio = operation.verdict.ratio
    if not (is_real(before) and is_real(after) and is_real(ratio)):
        return False
    other_way = (after - before) * (ratio - 1) < 0
    return other_way and abs(math.log(after / before / ratio)) > _CLEARLY


def some_failed(operation: OperationVerdict) -> bool:
    """Returns whether attempts failed, which the ratio has and the medians lack."""
    verdict = operation.verdict
    return verdict.stalls is not None and any(
        len(times) < verdict.operations for times in operation.times.values()
    )


def from_to(operation: OperationVerdict) -> str:
    """Returns the median times of both arms, such as `12.7 → 16 ms`; empty without both."""
    before, after = medians(operation)
    if "–" in (before, after):
        return ""
    unit = before.rpartition(" ")[2]
    return f"{before.removesuffix(f' {unit}') if after.endswith(f' {unit}') else before} → {after}"


def _stalls_counted(found: StallVerdict) -> str:
    """Returns the stalls of both arms, and how many of the candidate's are failures."""
    of = pages.count(found.operations, "operation")
    failed = next((each.values.get("failed") for each in found.reason), None)
    failures = f" ({failed} of them failed)" if failed else ""
    return f"{found.candidate} of {of} stalled{failures}, {found.baseline} of the baseline"


def _said(report: VerdictReport) -> str:
    points = worst_first(report.points)
    if not points:
        return "no point is in both, so nothing was compared"
    if report.is_study:
        return _compared(points)
    if report.word == "PASS":
        return _all_passed(points, report.gate)
    found = [point for point in points if point.word == report.word]
    said = told(found[0], report.gate).text if found else "a point has regressed"
    if len(points) == 1 or not found:
        return said
    name = short_names(points)[found[0].point_id]
    have = "has no verdict" if len(found) == 1 else "have no verdict"
    have = "regressed" if report.word == "REGRESSION" else have
    return f"in {name} {said}; {len(found)} of {len(points)} points {have}"


def remarks(report: VerdictReport) -> list[str]:
    """Returns the notes of a comparison, and the files that were left out, a line each."""
    left_out = (f"left out: {line}" for line in report.left_out)
    return [*(why((note,)) for note in report.notes), *left_out]


def short_names(points: Sequence[PointVerdict]) -> dict[str, str]:
    """Returns names that tell the points apart, by their ids."""
    return shortened({point.point_id: point.point for point in points})


def apart(report: VerdictReport) -> bool:
    """Returns whether both sides of every point were measured in runs of their own."""
    return all(point.mode == "unpaired" for point in report.points)


def _trouble(operation: OperationVerdict) -> tuple[int, float]:
    value = operation.verdict.ratio
    # What has no ratio could be anything, and comes first among its equals.
    high = math.inf if value is None or math.isnan(value) else value
    return _RANKS[operation.verdict.word], -high


def _regressed(point: PointVerdict, gate: GateConfig) -> str:
    if point.endpoint == "failures":
        return _failing(point)
    worst = nearest_to_trouble(point)
    if worst is None or worst.verdict.word != "REGRESSION":
        return why(point.reason) or "it regressed"
    others = [each for each in primary(point) if each is not worst]
    also = [each for each in others if each.verdict.word == "REGRESSION"]
    passed = [each for each in others if each.verdict.word == "PASS"]
    parts = [_slower(worst)]
    parts += [f"{_names(also)} regressed too"] if also else []
    parts += [f"{_names(passed)} are not slower by {_bounds(passed, gate)}"] if passed else []
    open_ = [each for each in others if each not in also and each not in passed]
    parts += [_open(each, gate) for each in open_ if _lacks_stalls(each.verdict)]
    unknown = [each for each in open_ if not _lacks_stalls(each.verdict)]
    parts += [f"of {_names(unknown)} nothing is shown"] if unknown else []
    return "; ".join(parts)


def _undecided(point: PointVerdict, gate: GateConfig) -> str:
    open_ = [each for each in primary(point) if each.verdict.word != "PASS"]
    if point.failed or point.endpoint in ("missing", "storage") or not open_:
        rare = point.endpoint == "failures" and not point.failed
        return _failing(point) if rare else why(point.reason) or "not judged"
    passed = [each for each in primary(point) if each.verdict.word == "PASS"]
    worst = min(open_, key=_trouble)
    parts = [f"{_names(passed)} are not slower by {_bounds(passed, gate)}"] if passed else []
    parts.append(_open(worst, gate))
    others = [each for each in open_ if each is not worst]
    parts += [f"{_names(others)} are open too"] if others else []
    return "; ".join(parts)


def _all_passed(points: Sequence[PointVerdict], gate: GateConfig) -> str:
    every = [(point, each) for point in points for each in primary(point)]
    if not every:
        return why(points[0].reason) or "nothing was judged"
    several, parts = len(points) > 1, []
    faster = [pair for pair in every if pair[1].verdict.faster]
    if faster and not several:
        gains = [each for _, each in faster]
        first, *also = sorted(gains, key=lambda each: each.verdict.ratio or 1)
        parts.append(f"{spoken(first.operation)} are faster: {_numbers(first)}")
        parts += [f"{_names(also)} are faster too"] if also else []
        every = [pair for pair in every if pair not in faster]
    if every:
        operations = [operation for _, operation in every]
        point, nearest = min(every, key=lambda pair: _trouble(pair[1]))
        of = f" in {len(points)} points" if several else ""
        where = f" of {short_names(points)[point.point_id]}" if several else ""
        alone = len(every) == 1
        name = f"{spoken(nearest.operation)}{where}"
        at = _changed(nearest) if alone else f"; closest to that: {name}, {_numbers(nearest)}"
        parts.append(f"{_names(operations)} are not slower by {_bounds(operations, gate)}{of}{at}")
    if faster and several:
        gained = len({point.point_id for point, _ in faster})
        parts.append(f"{gained} of them have something that is faster")
    return "; ".join([*parts, *filter(None, [not_looked_at(points)])])


def not_looked_at(points: Iterable[PointVerdict]) -> str:
    """Returns which of stalls and failures nobody looked at; empty if all were counted."""
    points = list(points)
    stalls = [each.verdict.stalls is None for point in points for each in primary(point)]
    failures = [point.failures is None for point in points]
    unseen = [
        what if all(found) else f"some {what}"
        for what, found in (("stalls", stalls), ("failures", failures))
        if any(found)
    ]
    return f"{' and '.join(unseen)} were not looked at" if unseen else ""


def _failing(point: PointVerdict) -> str:
    found = point.failures
    if found is None or not (found.candidate or found.baseline):
        return why(point.reason)
    fail = "fail" if point.word == "REGRESSION" else "may fail more often"
    return (
        f"attempts {fail}: {found.candidate} of {found.attempts} failed, "
        f"{found.baseline} of the baseline"
    )


def _slower(operation: OperationVerdict) -> str:
    verdict, name = operation.verdict, spoken(operation.operation)
    if verdict.endpoint == "stalls" and verdict.stalls is not None:
        return f"{name} stall: {_stalls_counted(verdict.stalls)}"
    if not is_real(verdict.ratio):
        return f"{name} are slower: {why(verdict.reason)}"
    return f"{name} take {_longer(operation)}"


def _open(operation: OperationVerdict, gate: GateConfig) -> str:
    verdict, name, stalls = operation.verdict, spoken(operation.operation), operation.verdict.stalls
    if verdict.endpoint == "stalls" and stalls is not None:
        seen = _stalls_counted(stalls)
        if not _lacks_stalls(verdict):
            return f"{name} may stall more often: {seen}"
        passed = f"{name} are not slower by {bound(operation, gate)}, but more stalls are not"
        return f"{passed} excluded{f': {seen}' if stalls.candidate or stalls.baseline else ''}"
    if _unjudged(verdict):
        return f"{name} were not judged: {why(verdict.reason) or 'nothing was measured'}"
    if verdict.high is not None and math.isfinite(verdict.high) and verdict.high > 1:
        most = pages.change(verdict.high).lstrip("+")
        by = f"take up to {most} as long" if most.endswith("x") else f"be slower, by up to {most}"
        return f"{name} may {by}: {_numbers(operation)}"
    return f"{name} have no verdict yet: {_numbers(operation)}"


def _lacks_stalls(verdict: Verdict) -> bool:
    """Returns whether an operation passes by its time, and too few stalls are excluded."""
    return any(each.code == "not_excluded" for each in verdict.reason)


def _unjudged(verdict: Verdict) -> bool:
    return not is_real(verdict.ratio) or bool(verdict.reason and verdict.p_regression is None)


def _longer(operation: OperationVerdict) -> str:
    """Returns `26 % longer (+18 to +35 %), 12.7 ms → 16 ms`."""
    changed, _, ends = change(operation.verdict).partition(" (")
    than = f"{changed.lstrip('+')} longer" if changed.startswith("+") else f"{changed} as long"
    return f"{than}{f' ({ends}' if ends else ''}{_from_to(operation)}"


def _numbers(operation: OperationVerdict) -> str:
    return f"{change(operation.verdict)}{_from_to(operation)}"


def _changed(operation: OperationVerdict) -> str:
    return f": {_numbers(operation)}" if is_real(operation.verdict.ratio) else ""


def _from_to(operation: OperationVerdict) -> str:
    unlike = medians_disagree(operation) or some_failed(operation)
    times = "" if unlike else from_to(operation)
    return f", {times}" if times else ""


def _names(operations: Iterable[OperationVerdict]) -> str:
    names = list(dict.fromkeys(spoken(each.operation) for each in operations))
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _bounds(operations: Iterable[OperationVerdict], gate: GateConfig) -> str:
    bounds = sorted({bound(each, gate).removesuffix(_OR_MORE) for each in operations})
    said = bounds[0] if len(bounds) == 1 else f"their margins ({', '.join(bounds)})"
    return f"{said}{_OR_MORE}"


def compared(operation: OperationVerdict, point: PointVerdict) -> str:
    """Returns the sentence of a study about an operation: `Orbax saves in 2.1x the time of ...`."""
    system, other = point.systems["candidate"], point.systems["baseline"]
    verdict = operation.verdict
    does = _SYSTEM_DOES.get(operation.operation, f"does {operation.operation}")
    if not is_real(verdict.ratio):
        return f"{system} {does}, and nothing says in what time of {other}: {why(verdict.reason)}"
    known = [end for end in (verdict.low, verdict.high) if is_real(end)]
    ends = " to ".join(pages.digits(end, 2) for end in known)
    within = f" ({ends}x)" if len(known) == 2 else ""
    return f"{system} {does} in {pages.digits(verdict.ratio, 2)}x the time of {other}{within}"


def _compared(points: Sequence[PointVerdict]) -> str:
    """Returns the whole saves and loads of the first points of a study."""
    said = list(_of_systems(points[:_MOST_TOLD]))
    more = len(points) - _MOST_TOLD
    return "; ".join([*said, *([f"{pages.count(more, 'more point')} below"] if more > 0 else [])])


def _of_systems(points: Sequence[PointVerdict]) -> Iterator[str]:
    names = short_names(points)
    for point in points:
        whole = [each for each in point.operations if each.operation in ("save", "load")]
        found = [compared(each, point) for each in whole or primary(point)]
        name = f"{names[point.point_id]}: " if len(points) > 1 else ""
        yield f"{name}{'; '.join(found) or why(point.reason)}"
