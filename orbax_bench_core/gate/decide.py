"""Verdict on one series of times, by the rank test, look by look."""

from __future__ import annotations

import math
from typing import Any

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Better, Blocks, read_blocks
from orbax_bench_core.gate.estimate import estimate
from orbax_bench_core.gate.looks import Outcome, settle
from orbax_bench_core.gate.noise import detectable, more_blocks, within_block_sigma
from orbax_bench_core.gate.verdict import Verdict

_ONLY = "times"


def decide(
    times: Any,
    labels: Any,
    rule: GateRule | None = None,
    *,
    seed: int = 0,
    better: Better = "lower",
) -> Verdict:
    """Decides whether the candidate is slower than the baseline.

    The data are gone through look by look, as if they were just coming in, and the first verdict
    stands: data beyond it change nothing, and are not reported. Without a verdict the word and the
    p-values are those of the last look that the data reach, while the estimate, its interval and
    what is detectable use every block there is. If something is wrong with the input, the verdict
    is INCONCLUSIVE and its `reason` says what.

    An interval covers the true ratio 95 times in 100 for a number of blocks that was fixed. Where
    the data chose the moment to stop it covers a little less (93 times at a ratio of 1.10, see
    `perf.gate`); the verdict, whose looks pay for that, is what to go by.

    Args:
        times: Seconds, shape (blocks, 4): by block, and by slot in the order of execution; or the
            values of any other positive metric.
        labels: True where the candidate ran, same shape, two per block.
        rule: When a difference counts; by default the defaults.
        seed: Seed of random orders, where there are too many blocks to count all.
        better: Which way the values are good. For `higher` the ratio is that of the reciprocals, so
            that above 1 is worse for every metric.
    """
    rule = GateRule() if rule is None else rule
    blocks = read_blocks(times, labels, better)
    if isinstance(blocks, str):
        return cannot_judge(blocks)
    outcome = settle({_ONLY: blocks}, {_ONLY: rule}, seed=seed)[_ONLY]
    return describe(blocks, outcome, rule, seed=seed)


def cannot_judge(reason: str) -> Verdict:
    """Returns the verdict on data that allow none."""
    return Verdict(word="INCONCLUSIVE", reason=reason)


def describe(blocks: Blocks, outcome: Outcome, rule: GateRule, *, seed: int = 0) -> Verdict:
    """Returns what the looks said, with how large the ratio is and what could have been found."""
    used = blocks
    if outcome.settled and outcome.look is not None:
        used = blocks.first(rule.looks[outcome.look] * len(blocks) // blocks.operations)
    found = estimate(used, draws=rule.draws, seed=seed)
    sigma = within_block_sigma(used)
    more = 0
    if not outcome.settled:
        more = more_blocks(sigma, math.log(found.ratio), used.operations, rule)
    reason = ""
    if outcome.look is None:
        reason = (
            f"too early: {used.operations} operations per arm, and the first look is at "
            f"{rule.looks[0]}"
        )
        if found.low is None or found.high is None:
            reason += f"; {len(used)} blocks are too few for a 95 % interval"
    return Verdict(
        word=outcome.word,
        reason=reason,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        p_regression=outcome.p_regression,
        p_pass=outcome.p_pass,
        operations=used.operations,
        look=outcome.look,
        settled=outcome.settled,
        detectable=detectable(sigma, used.operations, rule),
        more_blocks=more,
    )
