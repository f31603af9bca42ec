"""Advice about a verdict, in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orbax_bench_core.config import ARMS, PER_ARM, Arm, GateConfig, GateRule
from orbax_bench_core.gate import SeriesHealth, Verdict

NO_HEALTH: Final[Mapping[Arm, SeriesHealth]] = {}

_KEPT: Final = "it measures only what is missing."


def advice(
    verdict: Verdict,
    operation: str,
    gate: GateConfig,
    *,
    primary: bool = True,
    health: Mapping[Arm, SeriesHealth] = NO_HEALTH,
    failed: bool = False,
    ended: bool = False,
    paired: bool = True,
) -> str:
    """Returns one line that tells what to do about a verdict.

    Args:
        verdict: The verdict.
        operation: Name of the operation that it is about.
        gate: The rules that were applied.
        primary: Whether the operation takes part in the verdict of its point.
        health: Health of the series of each arm, which may be why no verdict was reached.
        failed: Whether an arm failed, so that there was less to judge than was asked for.
        ended: Whether the point of the operation needs no more blocks, whatever becomes of this
            operation.
        paired: Whether both arms were run in one place in blocks.
    """
    rule = gate.rule(operation)
    if verdict.word == "REGRESSION":
        return _of_regression(verdict, rule, primary=primary, paired=paired)
    if verdict.word == "PASS":
        return _of_pass(verdict, rule, paired)
    if failed:
        why = f" ({verdict.reason})" if verdict.reason else ""
        # First attempts count: the same directory would keep those that failed.
        return f"Repair the arm that failed{why}, then run anew in another output directory."
    if not paired:
        return "Run both arms in one place with `orbax-bench ab`: that needs no history."
    if verdict.endpoint == "missing":
        return (
            f"Not judged: {verdict.reason}. Measure it in both arms, or leave it out of "
            "`gate.primary`."
        )
    if verdict.endpoint == "stalls":
        return _of_stalls(verdict)
    if verdict.reason:
        return f"Not judged: {verdict.reason}. Run the same command again: {_KEPT}"
    if not primary:
        return "Decides nothing: if it matters, name it in `gate.primary` and run anew."
    if ended and verdict.operations < _last_look(verdict, rule):
        return "Its point was settled by another operation first: see to that one."
    return " ".join([_of_doubt(verdict, rule), *_unsteady(health)])


def _of_regression(verdict: Verdict, rule: GateRule, *, primary: bool, paired: bool) -> str:
    if not paired:
        return "Only a warning: run both arms in one place with `orbax-bench ab` before acting."
    if not primary:
        return "Decides nothing: if it matters, name it in `gate.primary` and run anew."
    seen = f" It stalls: {verdict.reason}." if verdict.endpoint == "stalls" else ""
    return (
        "Look at what differs between the arms. No need to run again: false alarms are at most "
        f"{_percent(rule.alpha)}.{seen}"
    )


def _of_pass(verdict: Verdict, rule: GateRule, paired: bool) -> str:
    so_far = "" if paired else ", as far as separate runs can tell"
    limit = f"a slow-down of {_percent(rule.margin)} or more"
    if verdict.bound == "floor":
        limit = f"a slow-down of {1000 * rule.min_effect_s:g} ms or more"
    typical = " for the typical time" if verdict.stalls is not None else ""
    said = f"Nothing to do{so_far}: {limit} is ruled out{typical}.{_open_stalls(verdict)}"
    if verdict.faster:
        return f"{said} The candidate is faster."
    if verdict.ratio is not None and verdict.low is not None and verdict.low > 1:
        likely = _about(verdict.ratio - 1)
        return f"{said} One of about {likely} is likely; if that matters, lower `gate.margin`."
    return said


def _open_stalls(verdict: Verdict) -> str:
    """Returns which share of stalls the data leave open."""
    stalls = verdict.stalls
    if stalls is None:
        return ""
    seen = "No" if stalls.candidate == 0 else str(stalls.candidate)
    return (
        f" {seen} stall{'' if stalls.candidate == 1 else 's'} in {stalls.operations} operations: "
        f"stalls of up to {_about(stalls.bound)} of operations cannot be excluded."
    )


def _of_stalls(verdict: Verdict) -> str:
    """Returns what to do where only stalls keep an operation from passing."""
    if not verdict.settled:
        return f"It goes on: {verdict.reason}. Run the same command again: {_KEPT}"
    return (
        f"Its typical time passes, but {verdict.reason}. Look at the slowest operations of each "
        "arm, and run anew with more operations in `gate.looks`."
    )


def _of_doubt(verdict: Verdict, rule: GateRule) -> str:
    """Returns what a verdict would need."""
    found = ""
    if verdict.detectable is not None:
        found = (
            f"{verdict.operations} operations per arm find a slow-down of "
            f"{_about(verdict.detectable)} or more in 9 of 10 cases. "
        )
    last = _last_look(verdict, rule)
    if verdict.operations < last:
        return f"{found}Run the same command again: it goes on, to {last} operations per arm."
    if verdict.more_blocks:
        needed = verdict.operations + PER_ARM * _per_life(verdict) * verdict.more_blocks
        return (
            f"{found}A verdict needs about {verdict.more_blocks} more blocks: run anew with "
            f"`gate.looks` up to {needed}."
        )
    return (
        f"{found}No number of operations that one would run gives a verdict: make the operation "
        "longer with larger data, run on a quieter machine, widen `gate.margin` or "
        "`gate.min_effect_s`, or leave it out of `gate.primary`."
    )


def _per_life(verdict: Verdict) -> int:
    """Returns the operations of one life of a worker; 1 where workers outlive a block."""
    return verdict.operations // verdict.lives if verdict.lives else 1


def _last_look(verdict: Verdict, rule: GateRule) -> int:
    return rule.looks_of(_per_life(verdict))[-1]


def _unsteady(health: Mapping[Arm, SeriesHealth]) -> list[str]:
    """Returns the drifts and regimes that may stand in the way of a verdict, as a sentence."""
    seen = []
    for arm in ARMS:
        series = health.get(arm)
        if series is None:
            continue
        if series.drifts and series.drift is not None:
            seen.append(f"{arm} drifts by {100 * series.drift:+.0f} %")
        if series.regimes:
            by = "" if series.regime_ratio is None else f", {series.regime_ratio:.3g}x apart"
            seen.append(f"{arm} has two regimes{by}")
    return [f"Seek the cause first: {'; '.join(seen)}."] if seen else []


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _about(share: float) -> str:
    """Returns a share that was estimated, with no more digits than it can have."""
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1g} %"
