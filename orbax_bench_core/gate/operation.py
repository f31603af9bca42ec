"""Verdict on one operation: its typical time, its stalls, and what they let one say."""

import math
from typing import Literal

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Blocks
from orbax_bench_core.gate.interval import interval
from orbax_bench_core.gate.location import TimeTest
from orbax_bench_core.gate.looks import Schedule
from orbax_bench_core.gate.noise import within_block_sigma
from orbax_bench_core.gate.plan import more_blocks
from orbax_bench_core.gate.power import LIKELY, POWER, detectable_at
from orbax_bench_core.gate.rank_test import log_ratio
from orbax_bench_core.gate.stalls import judge_stalls
from orbax_bench_core.gate.verdict import Endpoint, StallVerdict, Verdict, Word
from orbax_bench_core.reasons import NO_REASON, Reasons, because


def cannot_judge(reason: Reasons) -> Verdict:
    """Returns the verdict on data that allow none; more of them do not help what is missing."""
    if any(each.code == "lacks" for each in reason):
        return Verdict(word="INCONCLUSIVE", reason=reason, endpoint="missing", settled=True)
    return Verdict(word="INCONCLUSIVE", reason=reason)


def outline(
    blocks: Blocks,
    rule: GateRule,
    outcome: TimeTest,
    *,
    alpha_scale: float = 1.0,
    granted: int = 0,
    seed: int = 0,
) -> Verdict:
    """Judges one look, of the operations up to it, without what `describe` adds.

    Args:
        blocks: Operations up to this look.
        rule: Levels, limits and looks of the operation.
        outcome: Result of the tests of the times at this look.
        alpha_scale: Share of alpha that the point has, above 0 and at most 1.
        granted: Index of the look to which `--more` lets it go on; 0 without.
        seed: Seed of the orders of the arms that are drawn for stalls.
    """
    schedule = Schedule.of(rule, blocks.per_life)
    alpha = rule.alpha * alpha_scale
    stalls = judge_stalls(blocks, rule, outcome.look, alpha=alpha, seed=seed)
    word, endpoint, reason = word_of(outcome, stalls)
    last = schedule.one_more if outcome.word == "PASS" else schedule.last
    return Verdict(
        word=word,
        reason=reason,
        endpoint=endpoint,
        time_word=outcome.word,
        p_regression=outcome.p_regression,
        p_pass=outcome.p_pass,
        operations=blocks.operations,
        lives=blocks.operations // blocks.per_life if blocks.lives else 0,
        look=outcome.look,
        settled=word != "INCONCLUSIVE" or outcome.look >= max(last, granted),
        stalls=stalls,
    )


def describe(
    found: Verdict,
    blocks: Blocks,
    rule: GateRule,
    outcome: TimeTest | None,
    *,
    alpha_scale: float = 1.0,
    first_pass: int = 0,
    seed: int = 0,
) -> Verdict:
    """Adds how large the ratio is, and what could have been found.

    Args:
        found: What the look says, or too little was measured for one.
        blocks: What it is of.
        rule: The rule of the operation.
        outcome: The test of its times; None before the first look.
        alpha_scale: Share of alpha that it has.
        first_pass: Operations per arm before which a limit on stalls or failures allows no PASS.
        seed: Seed of random orders.
    """
    schedule = Schedule.of(rule, blocks.per_life)
    last = schedule.shares[max(schedule.last, 0 if outcome is None else outcome.look)]
    ratio = low = high = None
    more: int | None = 0
    whole = sigma = within_block_sigma(blocks)
    if outcome is not None and outcome.processes is not None:
        whole = outcome.processes.sigma(blocks.operations, rule.alpha * alpha_scale * last)
    if blocks.some_worked(candidate=True) and blocks.some_worked(candidate=False):
        centre = log_ratio(blocks) if outcome is None else outcome.log_ratio(blocks)
        ratio = math.exp(centre)
        if outcome is not None:
            low, high = interval(blocks, rule, outcome, seed=seed)
        if outcome is None or not outcome.settled:
            more = more_blocks(whole, centre, blocks.operations, rule, blocks.per_life)
    baseline_s = blocks.median() if blocks.some_worked(candidate=False) else None
    slow_downs = detectable_at(
        (POWER, LIKELY),
        min(sigma, whole),
        blocks.operations,
        rule,
        tau=math.sqrt(max(0.0, whole**2 - sigma**2)),
        per_life=blocks.per_life,
        baseline_s=baseline_s,
        alpha_scale=alpha_scale,
        first_pass=first_pass,
    )
    most, likely = (each if math.isfinite(each) else None for each in slow_downs)
    word = "INCONCLUSIVE" if outcome is None else outcome.word
    return found.model_copy(
        update={
            "ratio": ratio,
            "low": low,
            "high": high,
            "bound": _larger_bound(rule, word, baseline_s),
            "detectable": most,
            "detectable_80": likely,
            "more_blocks": more,
        }
    )


def too_early(blocks: Blocks, rule: GateRule) -> Verdict:
    """Returns the verdict on fewer operations than the first look takes."""
    first = Schedule.of(rule, blocks.per_life).looks[0]
    operations = blocks.operations
    return Verdict(
        word="INCONCLUSIVE",
        reason=because("too_early", operations=operations, first_look=first),
        operations=operations,
        lives=operations // blocks.per_life if blocks.lives else 0,
    )


def word_of(outcome: TimeTest, stalls: StallVerdict) -> tuple[Word, Endpoint, Reasons]:
    """Returns the word of an operation by its time and its stalls, which decided it, and why."""
    if outcome.word == "REGRESSION":
        return outcome.word, "time", NO_REASON
    if stalls.word == "REGRESSION":
        return "REGRESSION", "stalls", stalls.reason
    if outcome.word == "INCONCLUSIVE":
        return "INCONCLUSIVE", "time", because("job_open") if outcome.job_open else NO_REASON
    return stalls.word, "time" if stalls.word == "PASS" else "stalls", stalls.reason


def _larger_bound(
    rule: GateRule, word: Word, baseline_s: float | None
) -> Literal["ratio", "floor"]:
    """Returns which bound is the larger slow-down at the typical time of the baseline."""
    share = rule.tolerance if word == "REGRESSION" else rule.margin
    return "floor" if baseline_s and rule.min_effect_s > share * baseline_s else "ratio"
