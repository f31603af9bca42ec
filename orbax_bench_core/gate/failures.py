"""Failures: first attempts that failed or hung, as data.

A retry is kept for diagnosis and never judged: a rule that allows retries until one works always
passes.
"""

from typing import Final

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Bools
from orbax_bench_core.gate.excess import Excess
from orbax_bench_core.gate.looks import Schedule, within
from orbax_bench_core.gate.verdict import FailureVerdict, Word
from orbax_bench_core.reasons import NO_REASON, because

_FEWEST_MORE: Final = 2
"""More failures of the candidate than of the baseline that keep a PASS back after the last look."""


def judge_failures(
    failed: Bools,
    labels: Bools,
    rule: GateRule,
    look: int | None,
    *,
    alpha_scale: float = 1.0,
    seed: int = 0,
) -> FailureVerdict:
    """Judges the failures of one point by its attempts up to a look, at its share of alpha.

    Args:
        failed: Which first attempts failed or hung, shape (blocks, slots, attempts of a slot).
        labels: Which slots were the candidate's, shape (blocks, slots).
        rule: Has the level and the looks.
        look: Index of the look; None before the first.
        alpha_scale: Share of alpha that this point has.
        seed: Seed of random orders, where there are too many blocks to count all.
    """
    schedule = Schedule.of(rule, failed.shape[2])
    excess = Excess.of(failed, labels, draws=rule.draws, seed=seed)
    counts = because(
        "failures",
        candidate=excess.candidate,
        baseline=excess.baseline,
        attempts=excess.operations,
    )
    word: Word = "PASS"
    reason = NO_REASON
    if look is None:
        early = because("too_early", operations=excess.operations, first_look=schedule.looks[0])
        word, reason = "INCONCLUSIVE", counts if excess.suspected else early
    elif within(excess.p_value, rule.failures_alpha * alpha_scale * schedule.shares[look]):
        word, reason = "REGRESSION", counts
    elif excess.suspected and (look < schedule.last or excess.difference >= _FEWEST_MORE):
        word, reason = "INCONCLUSIVE", counts
    elif left_open := excess.beyond(rule.max_failures, "failures"):
        word, reason = "INCONCLUSIVE", left_open
    return FailureVerdict(
        word=word,
        reason=reason,
        candidate=excess.candidate,
        baseline=excess.baseline,
        attempts=excess.operations,
        p_value=excess.p_value,
        bound=excess.bound,
        limit=rule.max_failures if isinstance(rule.max_failures, float) else None,
        look=look,
    )


def nothing_worked(failed: Bools) -> bool:
    """Returns whether all attempts of both arms failed in the first block: nothing to compare."""
    return bool(len(failed) and failed[0].all())
