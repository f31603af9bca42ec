"""Advice about a verdict, in one line, and whether more operations would help it."""

import dataclasses
from collections.abc import Mapping
from typing import Final, Literal

from orbax_bench_core.analysis.verdicts.model import PointVerdict
from orbax_bench_core.config import ARMS, PER_ARM, Arm, GateConfig, GateRule
from orbax_bench_core.gate import SeriesHealth, Verdict
from orbax_bench_core.pages import seconds as seconds_of

NO_HEALTH: Final[Mapping[Arm, SeriesHealth]] = {}

Why = Literal["more", "unlikely", "used_up", "unfinished", "decided", "unpaired", "no_use"]
"""Why more operations would help a point, or would not.

`more`: a look that is left probably gives a verdict. `unlikely`: none does, at this noise.
`used_up`: there is no look left. `unfinished`: the comparison goes on by itself, with the same
command. `decided`: it has a verdict. `unpaired`: two runs that were measured apart have no looks.
`no_use`: what keeps it from a verdict is not their number, see its `reason`.
"""

_KEPT: Final = "it measures only what is missing."

_SHORT: Final = 0.1
"""Seconds below which a slow-down of an operation may be too small to matter to anyone."""

_SEEK: Final = (
    "retries and throttling of the storage, other work on the machine, and what the candidate does "
    "that the baseline does not"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoingOn:
    """Whether more operations would help a point that has no verdict."""

    why: Why
    until: int = 0  # operations per arm at the look to go on to; 0 unless `why` is `more`
    # `--more`, with a number where the next look would hardly do; empty unless `why` is `more`
    flag: str = ""
    # relative change of each arm over the comparison, such as 0.29, where it is clear and large
    drifts: Mapping[Arm, float] = dataclasses.field(default_factory=dict)


def going_on(point: PointVerdict, gate: GateConfig) -> GoingOn:
    """Says whether `--more` would help a point, and how far it would have to go.

    It helps where every primary operation that is open has a look ahead of it which, if its ratio
    and noise stay as they are, gives a verdict eight times in ten. Stalls, failures and limits on
    them need no such forecast: each look shows more of them.
    """
    if point.mode == "unpaired":
        return GoingOn(why="unpaired")
    if point.word != "INCONCLUSIVE":
        return GoingOn(why="decided")
    primary = [each for each in point.operations if each.primary]
    if point.failed or point.exploratory or point.endpoint in ("missing", "storage") or not primary:
        return GoingOn(why="no_use")
    if not point.settled:
        return GoingOn(why="unfinished")
    open_ = [each for each in primary if each.verdict.time_word == "INCONCLUSIVE"]
    found = [_forecast(each.verdict, gate) for each in open_ or primary]
    drifts = {
        arm: health.drift
        for each in open_
        for arm, health in each.health.items()
        if health.drifts and health.drift is not None
    }
    worst = next((each for each in found if each.why != "more"), None)
    worst = worst or max(found, key=lambda each: each.until)
    return dataclasses.replace(worst, drifts=drifts)


def _forecast(verdict: Verdict, gate: GateConfig) -> GoingOn:
    """Says the same of one operation, by itself."""
    per_life = _per_life(verdict)
    left = [each for each in gate.looks_with_more(per_life) if each > verdict.operations]
    if not left:
        return GoingOn(why="used_up")
    blocks = verdict.more_blocks if verdict.time_word == "INCONCLUSIVE" else 0
    if blocks is None:
        return GoingOn(why="unlikely")
    until = max(left[0], verdict.operations + PER_ARM * per_life * blocks)
    number = "" if until == left[0] else f" {until - verdict.operations}"
    return GoingOn(why="more", until=until, flag=f"--more{number}")


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
        return (
            "Two runs that were measured apart cannot go on: run both arms in one place with "
            "`orbax-bench ab`, which needs no history."
        )
    if verdict.endpoint == "missing":
        return (
            "An operation that an arm lacks, be it in one repeat, is no PASS: let both arms "
            "measure it in every repeat, or leave it out of `gate.primary`, and run again."
        )
    if verdict.endpoint == "stalls" and not (ended and not verdict.settled):
        return _of_suspicion(verdict, gate)
    if verdict.reason and verdict.endpoint != "stalls":
        return f"Run the same command again: {_KEPT}"
    if not primary:
        return "Decides nothing: if it matters, name it in `gate.primary` and run again."
    if ended and verdict.look is not None and not verdict.settled:
        return "Its point was settled before it was: see to what decided that first."
    return _of_doubt(verdict, operation, gate, health)


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


def _of_suspicion(verdict: Verdict, gate: GateConfig) -> str:
    """Returns the advice about stalls that could be chance, or that are not excluded yet."""
    if not verdict.settled:
        return "Run the same command again: stalls are followed up."
    look = f"look at the operations that stall: {_SEEK}."
    if flag := _forecast(verdict, gate).flag:
        return f"Chance is not ruled out: run the same command with `{flag}`, and {look}"
    return f"Chance is not ruled out, and no look is left: {look}"


def _of_doubt(
    verdict: Verdict, operation: str, gate: GateConfig, health: Mapping[Arm, SeriesHealth]
) -> str:
    """Returns the operations that a verdict would need, or what helps in their place."""
    rule, found, seen = gate.rule(operation), "", "; ".join(_unsteady(health))
    cause = [f"Seek the cause first: {seen}."] if seen else []
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
        on = f"it goes on, to {last} operations per arm."
        return " ".join([f"{found}Run the same command again: {on}", *cause])
    forecast = _forecast(verdict, gate)
    if forecast.why == "more":
        on = f"to {forecast.until} operations per arm, which probably gives a verdict."
        return " ".join([f"{found}Run the same command with `{forecast.flag}`: {on}", *cause])
    why = "More operations would not do"
    if forecast.why == "used_up":
        why = "The looks of `--more` are used up"
    whose = "The machine is busy" if "baseline" in seen else "Seek the cause first"
    busy = f". {whose}: {seen}. What helps" if seen else ""
    return f"{found}{why}{busy}: {_otherwise(operation, rule, health)}."


def _per_life(verdict: Verdict) -> int:
    """Returns the operations of one life of a worker; 1 where workers outlive a block."""
    return verdict.operations // verdict.lives if verdict.lives else 1


def _otherwise(operation: str, rule: GateRule, health: Mapping[Arm, SeriesHealth]) -> str:
    """Returns the advice where no number of operations that may be added helps."""
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
    """Returns the drifts and regimes that may stand in the way of a verdict."""
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
    return seen


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _about(share: float) -> str:
    """Returns a share that was estimated, with no more digits than it can have."""
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1g} %"
