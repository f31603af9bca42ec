"""Verdict on the typical time of several series at one look, at a level for all of them."""

import dataclasses
import math
from collections.abc import Hashable, Mapping
from typing import TypeVar

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Blocks
from orbax_bench_core.gate.carry_over import LEVEL, AfterEffect, CarryOver
from orbax_bench_core.gate.looks import Schedule, within
from orbax_bench_core.gate.processes import ProcessTest, Spread
from orbax_bench_core.gate.rank_test import log_ratio, p_values
from orbax_bench_core.gate.verdict import Word

_Key = TypeVar("_Key", bound=Hashable)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TimeTest:
    """Test of the times of one series at one look.

    Attributes:
        look: Index of the look.
        word: What it says.
        centre: Estimated log ratio; None if the test does without it: of lives, and where an arm
            has no operation that worked.
        p_regression: P-value when the slow-down is the tolerance; None without any operation of the
            baseline that worked.
        p_pass: P-value when the slow-down is the margin; None as above.
        alpha: Level of REGRESSION at this look, as Holm's procedure left it.
        pass_alpha: Level of PASS at this look.
        processes: The test over worker processes, where the arms share several; a verdict needs
            both tests, and the p-values are the larger ones.
        carry_over: What operations in turn say of those after the candidate; None of lives, and
            where an arm has no operation that worked.
        job: The test of what a job pays that runs the candidate alone, where there is `carry_over`;
            a PASS needs it as well.
        job_open: Whether it is all that a PASS lacks.
        rule: The rule, with `min_effect_s` as a share of what the baseline takes.
    """

    look: int
    rule: GateRule
    word: Word = "INCONCLUSIVE"
    centre: float | None = None
    p_regression: float | None = None
    p_pass: float | None = None
    alpha: float = 0.0
    pass_alpha: float = 0.0
    processes: ProcessTest | None = None
    carry_over: CarryOver | None = None
    job: ProcessTest | None = None
    job_open: bool = False

    @property
    def settled(self) -> bool:
        """Whether it is a verdict."""
        return self.word != "INCONCLUSIVE"

    def log_ratio(self, blocks: Blocks) -> float:
        """Returns the estimated log ratio of the operations that were tested."""
        return log_ratio(blocks) if self.centre is None else self.centre

    @property
    def stands(self) -> bool:
        """Whether its word is one of what a job pays as well."""
        if self.word != "REGRESSION" or self.job is None:
            return self.word == "PASS"
        return within(self.job.tails(math.log1p(self.rule.tolerance))[0], LEVEL)

    def suspect(self, chance: float) -> AfterEffect | None:
        """Returns the after-effect by which its word may not be one of what a job pays.

        None if there is none that matters with a p-value of at most `chance`.
        """
        if self.carry_over is None or self.stands:
            return None
        effect = self.carry_over.after_effect()
        return effect if within(effect.p_value, chance) and effect.matters(self.rule) else None


def judge_times(
    series: Mapping[str, Blocks],
    rules: Mapping[str, GateRule],
    look: int,
    *,
    family: int | None = None,
    alpha_scale: float = 1.0,
    seed: int = 0,
) -> dict[str, TimeTest]:
    """Tests several series by their operations up to a look.

    REGRESSION is given under Holm's procedure: a point has regressed when any of its series has, so
    together they may be wrong with probability alpha. PASS is given to each series at its own
    level: a point passes only when all of its series do, which is an intersection-union test and
    needs no correction (R. L. Berger, "Multiparameter hypothesis testing and acceptance sampling",
    Technometrics 24 (1982) 295). A PASS is of what a job pays: of its own time by ranks, and of
    that and what it costs the next operation together.

    Args:
        series: What was measured up to the look.
        rules: The rule of each series.
        look: Index of the look, which has its share of alpha.
        family: Hypotheses that share alpha; None takes the number of series.
        alpha_scale: Share of alpha that they have.
        seed: Seed of random orders, where there are too many blocks to count all.
    """
    if not series:
        return {}
    common = next(iter(rules.values()))
    share = Schedule.of(common, next(iter(series.values())).per_life).shares[look]
    alpha, pass_alpha = common.alpha * share * alpha_scale, common.pass_alpha * share
    found = {name: _look(blocks, rules[name], look, seed) for name, blocks in series.items()}
    levels = holm_levels(
        {name: test.p_regression for name, test in found.items()}, family or len(series), alpha
    )
    return {name: _with_word(test, levels[name], pass_alpha) for name, test in found.items()}


def _look(blocks: Blocks, rule: GateRule, look: int, seed: int) -> TimeTest:
    if not blocks.some_worked(candidate=False):
        return TimeTest(look=look, rule=rule)
    found = TimeTest(look=look, rule=rule.in_ratios(blocks.median()))
    floor, draws = rule.min_effect_s, rule.draws
    tolerance, margin = math.log1p(rule.tolerance), math.log1p(rule.margin)
    slow, _ = p_values(blocks, tolerance, floor, draws=draws, seed=seed)
    _, fast = p_values(blocks, margin, floor, draws=draws, seed=seed)
    found = dataclasses.replace(found, p_regression=slow, p_pass=fast)
    if blocks.lives or not blocks.some_worked(candidate=True):
        return found
    centre = log_ratio(blocks)
    spread, carry_over = Spread.of(blocks, centre), CarryOver.of(blocks, centre)
    job = carry_over.job(spread)
    found = dataclasses.replace(found, centre=centre, carry_over=carry_over, job=job)
    if blocks.per_process is None:
        return found
    processes = ProcessTest.of(blocks, centre, spread)
    slow = max(slow, processes.tails(math.log1p(found.rule.tolerance))[0])
    fast = max(fast, processes.tails(math.log1p(found.rule.margin))[1])
    return dataclasses.replace(found, p_regression=slow, p_pass=fast, processes=processes)


def _with_word(test: TimeTest, alpha: float, pass_alpha: float) -> TimeTest:
    word: Word = "INCONCLUSIVE"
    p_pass, job_open = test.p_pass, False
    if within(test.p_regression, alpha):
        word = "REGRESSION"
    elif within(p_pass, pass_alpha):
        word = "PASS"
    if test.job is not None and p_pass is not None:
        p_pass = max(p_pass, test.job.tails(math.log1p(test.rule.margin))[1])
        if word == "PASS" and not within(p_pass, pass_alpha):
            word, job_open = "INCONCLUSIVE", True
    return dataclasses.replace(
        test, word=word, p_pass=p_pass, alpha=alpha, pass_alpha=pass_alpha, job_open=job_open
    )


def holm_levels(found: Mapping[_Key, float | None], family: int, alpha: float) -> dict[_Key, float]:
    """Returns the level of each hypothesis under Holm's step-down procedure among `family`.

    A hypothesis is rejected exactly when its p-value is within its level.

    Args:
        found: P-value of each hypothesis; None for one that could not be tested.
        family: Hypotheses that share alpha, at least as many as `found`.
        alpha: Level of the family (S. Holm, Scand. J. Statist. 6 (1979) 65).
    """
    order = sorted(found, key=lambda name: found[name] or 0.0)
    rejected, levels = 0, {}
    for name in order:
        levels[name] = alpha / (family - rejected)
        rejected += within(found[name], levels[name])
    return levels
