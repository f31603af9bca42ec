"""Advice about a verdict, in one line."""

from collections.abc import Mapping
from typing import Final

from orbax_bench_core.config import ARMS, PER_ARM, Arm, GateConfig, GateRule
from orbax_bench_core.gate import SeriesHealth, Verdict
from orbax_bench_core.pages import seconds as seconds_of

NO_HEALTH: Final[Mapping[Arm, SeriesHealth]] = {}

_KEPT: Final = "it measures only what is missing."

_SHORT: Final = 0.1
"""Seconds below which a slow-down of an operation may be too small to matter to anyone."""

_SEEK: Final = (
    "retries and throttling of the storage, other work on the machine, and what the candidate does "
    "that the baseline does not"
)


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
    """Returns one line that tells what to do about a verdict."""
    rule = gate.rule(operation)
    if verdict.word == "REGRESSION":
        return _of_regression(verdict, rule, gate, primary=primary, paired=paired)
    if verdict.word == "PASS":
        return _of_pass(verdict, rule, paired)
    if failed:
        why = f" ({verdict.reason})" if verdict.reason else ""
        # First attempts count: the same directory would keep those that failed.
        return f"Repair the arm that failed{why}, then run again in another output directory."
    if not paired:
        return "Run both arms in one place with `orbax-bench ab`: that needs no history."
    if verdict.endpoint == "missing":
        return (
            "An operation that an arm lacks, be it in one repeat, is no PASS: let both arms "
            "measure it in every repeat, or leave it out of `gate.primary`, and run again."
        )
    if verdict.endpoint == "stalls" and not (ended and not verdict.settled):
        return _of_suspicion(verdict)
    if verdict.reason and verdict.endpoint != "stalls":
        return f"Run the same command again: {_KEPT}"
    if not primary:
        return "Decides nothing: if it matters, name it in `gate.primary` and run again."
    if ended and verdict.look is not None and not verdict.settled:
        return "Its point was settled before it was: see to what decided that first."
    return " ".join([_of_doubt(verdict, operation, rule, health), *_unsteady(health)])


def _of_regression(
    verdict: Verdict, rule: GateRule, gate: GateConfig, *, primary: bool, paired: bool
) -> str:
    if not primary:
        return "Decides nothing: if it matters, name it in `gate.primary` and run again."
    if not paired and verdict.beyond_runs:
        return (
            "Look at what differs between the runs; `orbax-bench ab` tells the code from the "
            "machine."
        )
    if not paired:
        return "Only a warning: run both arms in one place with `orbax-bench ab` before acting."
    of = "run" if gate.family == "suite" else "point"
    alarms = (
        f"Where nothing differs, at most {_percent(gate.false_alarms)} of such {of}s end in "
        f"REGRESSION: {_percent(gate.alpha)} by times, {_percent(gate.alpha)} by stalls, "
        f"{_percent(gate.failures_alpha)} by failures."
    )
    if verdict.endpoint == "stalls":
        return (
            f"Look at the operations that stall, which the figure marks: {_SEEK}. The typical time "
            f"says {_of_time(verdict)}. {alarms}"
        )
    by_floor = ""
    if verdict.bound == "floor":
        floor = seconds_of(rule.min_effect_s)
        by_floor = (
            f" It is slower by more than {floor}: a slow-down below that does not count here."
        )
    return f"Look at what differs between the arms.{by_floor} {alarms}"


def _of_time(verdict: Verdict) -> str:
    words = {"PASS": "PASS", "REGRESSION": "REGRESSION"}
    return words.get(verdict.time_word or "", "nothing yet")


def _of_pass(verdict: Verdict, rule: GateRule, paired: bool) -> str:
    so_far = "" if paired else ", as far as separate runs can tell"
    said = f"A slow-down of {_percent(rule.margin)} or more is ruled out{so_far}."
    if verdict.bound == "floor":
        floor = seconds_of(rule.min_effect_s)
        said = (
            f"A slow-down of {floor} or more is ruled out{so_far}; one below {floor} does not "
            f"count here, though it may be more than {_percent(rule.margin)}."
        )
    if verdict.faster:
        return f"{said} The candidate is faster."
    if verdict.high is not None and verdict.high < 1:
        return f"{said} It is not slower."
    if verdict.ratio is not None and verdict.low is not None and verdict.low > 1:
        likely = _about(verdict.ratio - 1)
        limit = "min_effect_s" if verdict.bound == "floor" else "margin"
        return f"{said} One of about {likely} is likely; if that matters, lower `gate.{limit}`."
    return said


def _of_suspicion(verdict: Verdict) -> str:
    """Returns the advice about stalls that could be chance, or that are not excluded yet."""
    if not verdict.settled:
        return "Run the same command again: stalls are followed up."
    return f"Chance is not ruled out: run again, and look at the operations that stall: {_SEEK}."


def _of_doubt(
    verdict: Verdict, operation: str, rule: GateRule, health: Mapping[Arm, SeriesHealth]
) -> str:
    """Returns the operations that a verdict would need."""
    found = ""
    if verdict.detectable is not None:
        likely = ""
        if verdict.detectable_80 is not None:
            likely = f"8 times in 10: +{_about(verdict.detectable_80)}; "
        found = (
            f"With {verdict.operations} operations per arm a slow-down is found {likely}9 "
            f"{'in' if likely else 'times in'} 10: +{_about(verdict.detectable)}. "
        )
    if not verdict.settled:
        last = rule.looks_of(_per_life(verdict))[-1]
        return f"{found}Run the same command again: it goes on, to {last} operations per arm."
    if verdict.more_blocks:
        needed = verdict.operations + PER_ARM * _per_life(verdict) * verdict.more_blocks
        return (
            f"{found}A verdict needs about {verdict.more_blocks} more blocks: run again with "
            f"`gate.looks` up to {needed}."
        )
    return f"{found}More operations would not do: {_otherwise(operation, rule, health)}."


def _per_life(verdict: Verdict) -> int:
    """Returns the operations of one life of a worker; 1 where workers outlive a block."""
    return verdict.operations // verdict.lives if verdict.lives else 1


def _otherwise(operation: str, rule: GateRule, health: Mapping[Arm, SeriesHealth]) -> str:
    """Returns the advice where no affordable number of operations helps."""
    ways = ["make the operation longer, with larger data", "measure in a quieter place"]
    baseline = health.get("baseline")
    margin_s = None if baseline is None else rule.margin * baseline.median
    if margin_s is not None and rule.min_effect_s < margin_s < _SHORT:
        small = seconds_of(float(f"{margin_s:.2g}"))
        ways.append(
            f"set `gate.min_effect_s` if {small} ({_percent(rule.margin)} of it) do not matter"
        )
    elif margin_s is None:
        ways.append("set `gate.min_effect_s`")
    return f"{', '.join(ways)}, or take {operation} out of `gate.primary`"


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
