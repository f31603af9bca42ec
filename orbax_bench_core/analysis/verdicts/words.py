"""Numbers and sentences of verdicts, the same in every report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.analysis.verdicts.evidence import evidence_remarks
from orbax_bench_core.analysis.verdicts.model import (
    OperationVerdict,
    PointVerdict,
    Unmatched,
    VerdictReport,
)
from orbax_bench_core.config import ARMS, PER_ARM, GateConfig
from orbax_bench_core.gate import Verdict, Word

MARKS: Final[dict[Word, str]] = {"REGRESSION": "✗", "INCONCLUSIVE": "?", "PASS": "✓"}
"""Stands before each word, so that no verdict is told by colour alone."""

STYLES: Final[dict[Word, str]] = {
    "REGRESSION": "bold red",
    "INCONCLUSIVE": "yellow",
    "PASS": "green",
}
"""Terminal style of each word."""

MEANINGS: Final[dict[Word, str]] = {
    "REGRESSION": "the candidate is slower than the baseline by more than the tolerance",
    "PASS": "a slow-down as large as the margin is ruled out",
    "INCONCLUSIVE": "the times allow neither of the two yet; this is not a pass",
}

READING: Final = (
    "The ratio is the time of the candidate over that of the baseline: above 1 is slower.",
    "The true ratio lies within the 95 % interval in 95 of 100 such comparisons.",
    "A verdict in (parentheses) is of an operation that is not primary: it decides nothing.",
    "A point is REGRESSION when one of its primary operations is, and PASS when all of them are.",
    "Arms that are `unpaired` were run apart: whatever else changed shows as a difference too.",
)
"""Reading aid of a table of verdicts, one sentence each."""

_RANKS: Final[dict[Word, int]] = {"REGRESSION": 0, "INCONCLUSIVE": 1, "PASS": 2}


def ratio(value: float | None) -> str:
    """Returns a ratio of times, such as `1.210x`; a dash when there is none."""
    return "–" if value is None or math.isnan(value) else f"{_plain(value)}x"


def interval(verdict: Verdict) -> str:
    """Returns the 95 % interval of a ratio, such as `[1.152–1.271]`; a dash without one."""
    low, high = verdict.low, verdict.high
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "–"
    return f"[{_plain(low)}–{_plain(high)}]"


def share(value: float) -> str:
    """Returns a share in percent with the digits that it has, such as `0.5 %`."""
    return f"{100 * value:.3g} %"


def word_of(operation: OperationVerdict) -> str:
    """Returns the word of an operation, in parentheses when it decides nothing."""
    return operation.verdict.word if operation.primary else f"({operation.verdict.word})"


def what_to_do(operation: OperationVerdict) -> str:
    """Returns the reason why an operation was not judged, and the advice about it."""
    reason, advice = operation.verdict.reason, operation.advice
    said = [advice] if reason in advice else [f"Not judged: {reason}.", advice]
    if operation.false_discovery is not None and operation.verdict.word == "REGRESSION":
        said.append(f"(False discovery rate: {share(operation.false_discovery)}.)")
    return " ".join(filter(None, said))


def flags(operation: OperationVerdict) -> list[str]:
    """Returns the health flags of an operation's series, one line each."""
    of_arms: dict[str, list[str]] = {}
    for arm in ARMS:
        if arm in operation.health:
            for flag in operation.health[arm].flags:
                of_arms.setdefault(flag, []).append(arm)
    return [
        f"{'both arms' if len(arms) > 1 else arms[0]}: {flag}" for flag, arms in of_arms.items()
    ]


def remarks(point: PointVerdict) -> list[str]:
    """Returns further remarks on a point."""
    return [
        *filter(None, [point.reason, *attempts(point), *evidence_remarks(point), point.switching]),
        *filter(None, [processes(point), continued(point)]),
    ]


def attempts(point: PointVerdict) -> list[str]:
    """Returns the failed first attempts of each arm that has some, one line each."""
    return [
        f"{arm}: {found.failed} of {_count(found.count, 'first attempt')} failed, first in "
        f"{found.example}"
        for arm in ARMS
        if (found := point.attempts.get(arm)) is not None and found.failed
    ]


def processes(point: PointVerdict) -> str:
    """Returns which worker processes measured a point, as a sentence; empty when unpaired."""
    if point.design is None:
        return ""
    if point.design.workers == "shared":
        return "One worker for both arms: an offset of its process is in both."
    if point.design.workers == "one_per_arm":
        return "One process per arm: an offset of a process counts as a difference."
    return f"{_count(point.blocks * PER_ARM, 'life', 'lives')} per arm, each a process of its own."


def continued(point: PointVerdict) -> str:
    """Returns how many lives an interruption cut in two, as a sentence; empty without one."""
    if not point.continued:
        return ""
    lives = _count(point.continued, "life was", "lives were")
    return f"{lives} continued in a new process after an interruption."


def design(point: PointVerdict) -> str:
    """Returns how a point was measured: `unpaired`, or in how many blocks."""
    if point.mode == "unpaired":
        return "unpaired"
    return f"{point.blocks or 'no'} block{'' if point.blocks == 1 else 's'}"


def rules(gate: GateConfig) -> list[str]:
    """Returns the rules of the gate, one line each."""
    family = "the primary operations of a point"
    if gate.family == "suite":
        family = "the primary operations of all points"
    together = f"over all looks and {family} together (Holm)"
    said = [
        f"Primary operations: {', '.join(gate.primary)}. They decide.",
        f"Tolerance {share(gate.tolerance)}: REGRESSION says that the slow-down is larger.",
        f"Margin {share(gate.margin)}: PASS says that the slow-down is smaller.",
        f"Within the tolerance, at most {share(gate.alpha)} end in REGRESSION, {together}.",
        f"At the margin, at most {share(gate.pass_alpha)} end in PASS.",
        f"Looks at {', '.join(map(str, gate.looks))} operations per arm; the first verdict stands.",
        "Blocks have two operations of each arm in random order.",
    ]
    if gate.min_effect_s:
        said.append(f"Both bounds are at least {gate.min_effect_s:g} s.")
    if gate.max_stalls is not None:
        said.append(f"PASS excludes stalls in {share(gate.max_stalls)} of operations or more.")
    for operation, own in gate.metrics.items():
        given = own.model_dump(exclude_none=True)
        if given:
            values = ", ".join(
                f"{name} {value:g} s" if name == "min_effect_s" else f"{name} {share(value)}"
                for name, value in given.items()
            )
            said.append(f"For {operation}: {values}.")
    return said


def _plain(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.3f}" if abs(value) < 9.9995 else f"{value:.4g}"


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
    return min(primary, key=_trouble, default=None)


def headline(report: VerdictReport) -> str:
    """Returns the result of a report in one sentence or two, without its word."""
    if report.exploratory:
        return f"{report.exploratory}. {_said(report)}"
    return _said(report)


def _said(report: VerdictReport) -> str:
    if not report.points:
        return "No point is in both arms, so that nothing was compared."
    if report.word == "REGRESSION":
        said = _regressed(report)
    elif report.word == "PASS":
        said = _passed(report)
    else:
        said = _undecided(report)
    if all(point.mode == "unpaired" for point in report.points):
        said += " The arms were run apart from each other: this is a warning, no proof."
    return said


def unmatched_line(point: Unmatched) -> str:
    """Returns which side alone has a point, and why it has no partner."""
    said = f"only in the {point.side}: {point.point}"
    if not point.differs:
        return said
    return f"{said} (the nearest point of the other side differs in {'; '.join(point.differs)})"


def _trouble(operation: OperationVerdict) -> tuple[int, float]:
    value = operation.verdict.ratio
    # What has no ratio could be anything, and comes first among its equals.
    high = math.inf if value is None or math.isnan(value) else value
    return _RANKS[operation.verdict.word], -high


def _regressed(report: VerdictReport) -> str:
    regressed = [
        (point, operation)
        for point in worst_first(report.points)
        for operation in point.operations
        if operation.primary and operation.verdict.word == "REGRESSION"
    ]
    if not regressed:
        return "A point has regressed."
    # A proof is told before a warning.
    point, worst = min(regressed, key=lambda pair: (pair[0].mode == "unpaired", _trouble(pair[1])))
    said = (
        f"{worst.operation} takes {ratio(worst.verdict.ratio)} as long {interval(worst.verdict)} "
        f"in {point.point}."
    )
    if len(regressed) == 1:
        return said
    said += f" In all, {len(regressed)} primary operations regressed"
    if len(report.points) == 1:
        return f"{said}."
    return f"{said}, in {len({at.point_id for at, _ in regressed})} of {len(report.points)} points."


def _passed(report: VerdictReport) -> str:
    primary = [
        operation.operation
        for point in report.points
        for operation in point.operations
        if operation.primary
    ]
    margins = {report.gate.rule(operation).margin for operation in primary}
    large = f"of {share(margins.pop())} or more" if len(margins) == 1 else "as large as its margin"
    return (
        f"A slow-down {large} is ruled out for {_count(len(primary), 'primary operation')} "
        f"of {_count(len(report.points), 'point')}."
    )


def _undecided(report: VerdictReport) -> str:
    open_points = [point for point in worst_first(report.points) if point.word == "INCONCLUSIVE"]
    said = (
        f"{len(open_points)} of {_count(len(report.points), 'point')} "
        f"{'has' if len(open_points) == 1 else 'have'} no verdict, which is not a pass."
    )
    failed = sum(point.failed for point in report.points)
    if failed:
        said += f" In {_count(failed, 'point')} an arm failed."
    nearest = [found for point in open_points if (found := nearest_to_trouble(point))]
    judged = [operation for operation in nearest if operation.verdict.ratio is not None]
    if judged:
        worst = min(judged, key=_trouble)
        said += (
            f" The highest ratio is {ratio(worst.verdict.ratio)} {interval(worst.verdict)} "
            f"({worst.operation})."
        )
    return said


def _count(number: int, what: str, several: str = "") -> str:
    return f"{number} {what if number == 1 else several or f'{what}s'}"
