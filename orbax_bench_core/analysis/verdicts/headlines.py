"""Headlines of reports: the result in a sentence or two."""

import math
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict, VerdictReport
from orbax_bench_core.analysis.verdicts.words import (
    ENDPOINTS,
    beside,
    interval,
    open_shares,
    ratio,
    seconds_of,
    share,
)
from orbax_bench_core.document import count
from orbax_bench_core.gate import Word
from orbax_bench_core.records import OverlapFinder

_WARNING: Final = "this is a warning, no proof."


def headline(report: VerdictReport) -> str:
    """Returns the result of a report in one sentence or two, without its word."""
    shared = OverlapFinder.warning(report.not_alone, "the verdict")
    said = f"{shared}. {_said(report)}" if shared else _said(report)
    return f"{report.exploratory}. {said}" if report.exploratory else said


def _said(report: VerdictReport) -> str:
    if report.is_study:
        return _study(report)
    if not report.points:
        return "No point is in both arms, so that nothing was compared."
    if report.word == "REGRESSION":
        said = " ".join(filter(None, [_regressed(report), _by_chance(report)]))
    elif report.word == "PASS":
        said = _passed(report)
    else:
        said = _undecided(report)
    if all(point.mode == "unpaired" for point in report.points):
        said += " The arms were run apart from each other: "
        said += "it is more than such runs differ by." if report.beyond_runs else _WARNING
    return said


_SAID: Final = {
    "save": "saves",
    "save_blocking": "returns from a save",
    "save_background": "writes in the background",
    "save_durable": "has a save on stable storage",
    "load": "loads",
}
_PUBLISHED: Final = (
    "Published by Orbax's authors for Llama 3.1 on GPUs and in the cloud: saves up to 3.5 times "
    "and loads up to 2 times as fast as PyTorch, 0.29x and 0.5x. Machine, storage, sizes and "
    "number of processes are others here; docs/frameworks.md says what differs."
)


def compared(operation: OperationVerdict, point: PointVerdict) -> str:
    """Returns the sentence of a study about an operation: `Orbax saves in 2.1x the time of ...`."""
    system, other = point.systems["candidate"], point.systems["baseline"]
    does, verdict = _SAID.get(operation.operation, f"does {operation.operation}"), operation.verdict
    if verdict.ratio is None:
        return f"{system} {does}, and nothing says in what time of {other}: {verdict.reason}"
    within = beside(verdict, lambda end: f"{end:.2g}")
    return f"{system} {does} in {verdict.ratio:.2g}x the time of {other}{within}"


def _study(report: VerdictReport) -> str:
    """Returns the whole saves and loads of each point, beside what has been published."""
    said = []
    for point in report.points:
        whole = [each for each in point.operations if each.operation in ("save", "load")]
        primary = [each for each in point.operations if each.primary]
        found = [compared(each, point) for each in whole or primary]
        name = f"{point.point}: " if len(report.points) > 1 else ""
        said.append(f"{name}{'; '.join(found) or point.reason}.")
    pairs = [set(point.systems.values()) for point in report.points]
    if all("Orbax" in systems for systems in pairs):
        said.append(_PUBLISHED)
    return " ".join(said)


def _regressed(report: VerdictReport) -> str:
    """Returns the worst regression; a proof is told before a warning, a failure before a time."""
    regressed = [
        (point, operation)
        for point in worst_first(report.points)
        for operation in point.operations
        if operation.primary and operation.verdict.word == "REGRESSION"
    ]
    failing = [
        point
        for point in report.points
        if point.word == "REGRESSION" and point.endpoint == "failures"
    ]
    if failing:
        said = f"Attempts fail in {failing[0].point}: {failing[0].reason}."
    elif regressed:
        point, worst = min(
            regressed, key=lambda found: (found[0].mode == "unpaired", trouble(found[1]))
        )
        said = _worst(point, worst)
    else:
        return "A point has regressed."
    if len(regressed) + bool(failing) <= 1:
        return said
    said += f" In all, {count(len(regressed), 'primary operation')} regressed"
    if len(report.points) == 1:
        return f"{said}."
    return f"{said}, in {len({at.point_id for at, _ in regressed})} of {len(report.points)} points."


def _by_chance(report: VerdictReport) -> str:
    """Returns how many points of such a run end in REGRESSION though nothing differs."""
    points = sum(point.mode != "unpaired" for point in report.points)
    if points < 2 or report.exploratory:
        return ""
    each, gate = report.gate.false_alarms, report.gate
    if gate.family == "suite":
        return f"Where nothing differs, at most {share(each)} of such runs have a REGRESSION."
    expected = each * points
    how = (
        f"at most {share(expected)} of such runs of {points} points have a REGRESSION"
        if expected < 1
        else f"such a run of {points} points has up to {expected:.2g} REGRESSION on average"
    )
    return f"Where nothing differs, {how}; `gate.family: suite` keeps it at {share(each)} of runs."


def _worst(point: PointVerdict, operation: OperationVerdict) -> str:
    verdict = operation.verdict
    if verdict.endpoint == "stalls":
        return f"{operation.operation} stalls in {point.point}: {verdict.reason}."
    between, guess = interval(verdict), ratio(verdict.ratio)
    if between == "–":
        return f"{operation.operation} takes {guess} as long in {point.point}."
    return (
        f"{operation.operation} takes {between} times as long in {point.point}, best guess {guess}."
    )


def _passed(report: VerdictReport) -> str:
    primary = [
        operation.operation
        for point in report.points
        for operation in point.operations
        if operation.primary
    ]
    margins = {report.gate.rule(operation).margin for operation in primary}
    large = f"of {share(margins.pop())} or more" if len(margins) == 1 else "as large as its margin"
    floors = {report.gate.rule(operation).min_effect_s for operation in primary} - {0.0}
    if len(floors) == 1:
        large += f" that is {seconds_of(floors.pop())} or more as well"
    return (
        f"A typical slow-down {large} is ruled out for "
        f"{count(len(primary), 'primary operation')} of {count(len(report.points), 'point')}, by "
        f"{_looked_at(report)} operations per arm. {open_shares(report.points)}"
        f"{_beyond_the_budget(report)}"
    )


def _beyond_the_budget(report: VerdictReport) -> str:
    """Returns why stalls and failures have no limit, where one took longer than it may."""
    gate = report.gate
    automatic = "auto" in (gate.max_stalls, gate.max_failures)
    shorter = any(
        point.failures is not None and point.failures.attempts < gate.fewest_of_pass(0.0)
        for point in report.points
    )
    if not (automatic and shorter):
        return ""
    return (
        f" Fewer would take longer than `gate.limit_minutes` ({gate.limit_minutes:g}); "
        "`orbax-bench history` adds up nights."
    )


def _looked_at(report: VerdictReport) -> str:
    """Returns how many operations of each arm the primary times were judged by."""
    found = {
        operation.verdict.operations
        for point in report.points
        for operation in point.operations
        if operation.primary
    }
    least, most = min(found, default=0), max(found, default=0)
    return str(least) if least == most else f"{least} to {most}"


def _undecided(report: VerdictReport) -> str:
    open_points = [point for point in worst_first(report.points) if point.word == "INCONCLUSIVE"]
    said = (
        f"{len(open_points)} of {count(len(report.points), 'point')} "
        f"{'has' if len(open_points) == 1 else 'have'} no verdict, which is not a pass."
    )
    failed = sum(point.failed for point in report.points)
    if failed:
        said += f" In {count(failed, 'point')} an arm failed."
    why = {ENDPOINTS[point.endpoint] for point in open_points if point.endpoint != "time"}
    if why:
        said += f" Decided by {' and by '.join(sorted(why))}."
    lacking = [point.reason for point in open_points if point.endpoint == "missing"]
    if lacking:
        return f"{said} {lacking[0]}."
    nearest = [found for point in open_points if (found := nearest_to_trouble(point))]
    judged = [operation for operation in nearest if operation.verdict.ratio is not None]
    if judged:
        worst = min(judged, key=trouble)
        between = interval(worst.verdict)
        within = f" within {between}" if between.startswith("[") else f" {between}"
        within = "" if between == "–" else f"{within}, best guess"
        said += f" The highest ratio is{within} {ratio(worst.verdict.ratio)} ({worst.operation})."
    return said


_RANKS: Final[dict[Word, int]] = {"REGRESSION": 0, "INCONCLUSIVE": 1, "PASS": 2}


def worst_first(points: Sequence[PointVerdict]) -> list[PointVerdict]:
    """Returns points by verdict; among equals paired ones first, then those that failed."""
    return sorted(
        points,
        key=lambda point: (_RANKS[point.word], point.mode == "unpaired", not point.failed),
    )


def primary_first(point: PointVerdict) -> list[OperationVerdict]:
    """Returns the operations of a point, primary ones first, otherwise as they were."""
    return sorted(point.operations, key=lambda operation: not operation.primary)


def nearest_to_trouble(point: PointVerdict) -> OperationVerdict | None:
    """Returns the primary operation with the worst verdict and then the highest ratio, if any."""
    primary = [operation for operation in point.operations if operation.primary]
    return min(primary, key=trouble, default=None)


def trouble(operation: OperationVerdict) -> tuple[int, float]:
    """Returns a key by which the worst verdict comes first, and of equals the highest ratio."""
    value = operation.verdict.ratio
    # What has no ratio could be anything, and comes first among its equals.
    high = math.inf if value is None or math.isnan(value) else value
    return _RANKS[operation.verdict.word], -high
