"""Verdicts in words and numbers, the same in every report."""

from __future__ import annotations

import math
from typing import Final

from orbax_bench_core.compare.verdict import OperationVerdict, PointVerdict, Verdict, Word
from orbax_bench_core.config.arms import ARMS
from orbax_bench_core.config.gate import GateConfig

MARKS: Final[dict[Word, str]] = {"REGRESSION": "✗", "INCONCLUSIVE": "?", "PASS": "✓"}
"""Stands before each word, so that no verdict is told by colour alone."""

STYLES: Final[dict[Word, str]] = {
    "REGRESSION": "bold red",
    "INCONCLUSIVE": "yellow",
    "PASS": "green",
}
"""How the terminal shows each word."""

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
"""How to read a table of verdicts, one sentence each."""


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


def word_of(found: OperationVerdict) -> str:
    """Returns the word of an operation, in parentheses when it decides nothing."""
    return found.verdict.word if found.primary else f"({found.verdict.word})"


def what_to_do(found: OperationVerdict) -> str:
    """Returns the reason why an operation was not judged, and the advice about it."""
    reason, advice = found.verdict.reason, found.advice
    said = [advice] if reason in advice else [f"Not judged: {reason}.", advice]
    if found.false_discovery is not None and found.verdict.word == "REGRESSION":
        said.append(f"(False discovery rate: {share(found.false_discovery)}.)")
    return " ".join(filter(None, said))


def flags(found: OperationVerdict) -> list[str]:
    """Returns what speaks against the series of an operation, one line each."""
    of_arms: dict[str, list[str]] = {}
    for arm in ARMS:
        if arm in found.health:
            for flag in found.health[arm].flags:
                of_arms.setdefault(flag, []).append(arm)
    return [
        f"{'both arms' if len(arms) > 1 else arms[0]}: {flag}" for flag, arms in of_arms.items()
    ]


def remarks(point: PointVerdict) -> list[str]:
    """Returns what else there is to say of a point."""
    said = [point.reason] if point.reason else []
    return [*said, point.switching] if point.switching else said


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
    for operation, own in gate.metrics.items():
        given = own.model_dump(exclude_none=True)
        if given:
            values = ", ".join(f"{name} {share(value)}" for name, value in given.items())
            said.append(f"For {operation}: {values}.")
    return said


def _plain(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.3f}" if abs(value) < 9.9995 else f"{value:.4g}"
