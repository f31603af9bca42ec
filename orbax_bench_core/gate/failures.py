"""Failures: first attempts that failed or hung, as data.

A retry is kept for diagnosis and never judged: whoever may try again until it works passes always.
"""

from typing import Final

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Bools
from orbax_bench_core.gate.excess import Excess
from orbax_bench_core.gate.looks import Schedule, within
from orbax_bench_core.gate.verdict import FailureVerdict, Word

_FEWEST_MORE: Final = 2


def settle_failures(
    failed: Bools,
    labels: Bools,
    rule: GateRule,
    *,
    end: int | None = None,
    alpha_scale: float = 1.0,
    seed: int = 0,
) -> tuple[FailureVerdict, bool]:
    """Looks at the failures of one point for as long as its comparison goes on.

    Args:
        failed: Which first attempts failed or hung, shape (blocks, slots, attempts of a slot).
        labels: Which slots were the candidate's, shape (blocks, slots).
        rule: Has the level and the looks.
        end: Index of the look at which everything else was settled; None while it is not.
        alpha_scale: Share of alpha that this point has.
        seed: Seed of random orders, where there are too many blocks to count all.
    """
    schedule = Schedule.of(rule, failed.shape[2])
    alpha = rule.failures_alpha * alpha_scale
    found = _verdict(failed, labels, rule, None, 0.0, seed)
    for look in range(min(schedule.reached(len(labels)), schedule.last + 1)):
        blocks, level = schedule.blocks(look), alpha * schedule.shares[look]
        found = _verdict(failed[:blocks], labels[:blocks], rule, look, level, seed)
        ends = end is not None and look >= min(end, schedule.last)
        if found.word == "REGRESSION" or (ends and found.word == "PASS"):
            return found, True
        if look == schedule.last:
            return found, ends
    return found, False


def nothing_worked(failed: Bools) -> bool:
    """Returns whether all attempts of both arms failed in the first block: nothing to compare."""
    return bool(len(failed) and failed[0].all())


def _verdict(
    failed: Bools, labels: Bools, rule: GateRule, look: int | None, level: float, seed: int
) -> FailureVerdict:
    excess = Excess.of(failed, labels, draws=rule.draws, seed=seed)
    suspected = excess.suspected
    if look == Schedule.of(rule, failed.shape[2]).last:
        suspected = suspected and excess.difference >= _FEWEST_MORE
    word: Word = "INCONCLUSIVE" if suspected or look is None else "PASS"
    if look is not None and within(excess.p_value, level):
        word = "REGRESSION"
    counts = (
        f"{excess.candidate} of {excess.operations} first attempts of the candidate failed, and "
        f"{excess.baseline} of the baseline"
    )
    reason = "too early" if look is None and not suspected else "" if word == "PASS" else counts
    left_open = excess.beyond(rule.max_failures, "failures", "attempts") if word == "PASS" else ""
    if left_open:
        word, reason = "INCONCLUSIVE", left_open
    return FailureVerdict(
        word=word,
        reason=reason,
        candidate=excess.candidate,
        baseline=excess.baseline,
        attempts=excess.operations,
        p_value=excess.p_value,
        bound=excess.bound,
        look=look,
    )
