"""Verdict on one operation: its typical time, its stalls, and what they let one say."""

import math
from typing import Literal

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Blocks, Missing
from orbax_bench_core.gate.interval import interval
from orbax_bench_core.gate.location import TimeTest
from orbax_bench_core.gate.looks import Schedule
from orbax_bench_core.gate.noise import within_block_sigma
from orbax_bench_core.gate.plan import more_blocks
from orbax_bench_core.gate.power import LIKELY, POWER, detectable_at
from orbax_bench_core.gate.rank_test import log_ratio
from orbax_bench_core.gate.stalls import count_stalls, settle_stalls
from orbax_bench_core.gate.verdict import Endpoint, StallVerdict, Verdict, Word


def cannot_judge(reason: str) -> Verdict:
    """Returns the verdict on data that allow none; more of them do not help what is missing."""
    if isinstance(reason, Missing):
        return Verdict(word="INCONCLUSIVE", reason=str(reason), endpoint="missing", settled=True)
    return Verdict(word="INCONCLUSIVE", reason=reason)


def describe(
    blocks: Blocks, rule: GateRule, outcome: TimeTest, *, alpha_scale: float = 1.0, seed: int = 0
) -> Verdict:
    """Returns what the looks said, with how large the ratio is and what could have been found."""
    schedule = Schedule.of(rule, blocks.per_life)
    alpha = rule.alpha * alpha_scale
    stalls, known = settle_stalls(blocks, rule, outcome, alpha=alpha, seed=seed)
    if stalls is not None and stalls.operations < blocks.operations:
        stalls = stalls.model_copy(update={"measured": count_stalls(blocks)})
    word, endpoint, reason = word_of(outcome, stalls)
    if outcome.look is None:
        first = schedule.looks[0]
        reason = (
            f"too early: {blocks.operations} operations per arm, and the first look is at {first}"
        )
    used = blocks if outcome.look is None else blocks.first(schedule.blocks(outcome.look))
    ratio = low = high = None
    sigma = within_block_sigma(used)
    if outcome.processes is not None:
        sigma = outcome.processes.sigma(used.operations, alpha * schedule.shares[-1])
    more: int | None = 0
    if used.some_worked(candidate=True) and used.some_worked(candidate=False):
        centre = log_ratio(used)
        ratio = math.exp(centre)
        if outcome.look is not None:
            low, high = interval(used, rule, outcome, centre, seed=seed)
        if not outcome.settled:
            more = more_blocks(sigma, centre, used.operations, rule, blocks.per_life)
    baseline_s = used.median() if used.some_worked(candidate=False) else None

    slow_downs = detectable_at(
        (POWER, LIKELY),
        sigma,
        used.operations,
        rule,
        per_life=blocks.per_life,
        baseline_s=baseline_s,
        alpha_scale=alpha_scale,
    )
    most, likely = (each if math.isfinite(each) else None for each in slow_downs)
    exhausted = outcome.look == schedule.last and not outcome.settled
    return Verdict(
        word=word,
        reason=reason,
        endpoint=endpoint,
        time_word=outcome.word,
        ratio=ratio,
        low=low,
        high=high,
        p_regression=outcome.p_regression,
        p_pass=outcome.p_pass,
        operations=used.operations,
        lives=used.operations // used.per_life if used.lives else 0,
        look=outcome.look,
        settled=known or exhausted,
        bound=_bound(rule, outcome, baseline_s),
        detectable=most,
        detectable_80=likely,
        more_blocks=more,
        stalls=stalls,
    )


def word_of(outcome: TimeTest, stalls: StallVerdict | None) -> tuple[Word, Endpoint, str]:
    """Returns the word of an operation by its time and its stalls, which decided it, and why."""
    if outcome.word == "REGRESSION" or stalls is None:
        return outcome.word, "time", ""
    if stalls.word == "REGRESSION":
        return "REGRESSION", "stalls", stalls.reason
    if outcome.word == "INCONCLUSIVE":
        return "INCONCLUSIVE", "time", ""
    return stalls.word, "time" if stalls.word == "PASS" else "stalls", stalls.reason


def _bound(
    rule: GateRule, outcome: TimeTest, baseline_s: float | None
) -> Literal["ratio", "floor"]:
    """Returns which bound is the larger slow-down at the typical time of the baseline."""
    share = rule.tolerance if outcome.word == "REGRESSION" else rule.margin
    return "floor" if baseline_s and rule.min_effect_s > share * baseline_s else "ratio"
