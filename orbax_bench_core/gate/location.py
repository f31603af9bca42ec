"""Verdict on the typical time of several series, look by look, at a level for all of them."""

import dataclasses
import math
from collections.abc import Hashable, Mapping
from typing import TypeVar

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Blocks
from orbax_bench_core.gate.looks import Schedule, within
from orbax_bench_core.gate.processes import ProcessTest
from orbax_bench_core.gate.rank_test import p_values
from orbax_bench_core.gate.verdict import Word

_Key = TypeVar("_Key", bound=Hashable)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TimeTest:
    """Test of the times of one series, as its looks left it.

    Attributes:
        word: The first verdict, or INCONCLUSIVE.
        look: Index of the look that gave it, or of the last one that the data reach; None when
            they reach none.
        p_regression: P-value at that look when the slow-down is the tolerance; None without a look,
            or without any operation of the baseline that worked.
        p_pass: P-value at that look when the slow-down is the margin; None as above.
        alpha: Level of REGRESSION at that look, as Holm's procedure left it.
        pass_alpha: Level of PASS at that look.
        processes: The test over worker processes at that look, where the arms share several; a
            verdict needs both tests, and the p-values are the larger ones.
    """

    word: Word = "INCONCLUSIVE"
    look: int | None = None
    p_regression: float | None = None
    p_pass: float | None = None
    alpha: float = 0.0
    pass_alpha: float = 0.0
    processes: ProcessTest | None = None

    @property
    def settled(self) -> bool:
        """Whether a verdict stands."""
        return self.word != "INCONCLUSIVE"


def settle(
    series: Mapping[str, Blocks],
    rules: Mapping[str, GateRule],
    *,
    family: int | None = None,
    alpha_scale: float = 1.0,
    seed: int = 0,
) -> dict[str, TimeTest]:
    """Looks at several series as their data come in, and stops each at its first verdict.

    REGRESSION is given under Holm's procedure at each look: a point has regressed when any of its
    series has, so together they may be wrong with probability alpha. A series that has regressed
    leaves the others a larger share from then on. PASS is given to each series at its own level: a
    point passes only when all of its series do, which is an intersection-union test and needs no
    correction (R. L. Berger, "Multiparameter hypothesis testing and acceptance sampling",
    Technometrics 24 (1982) 295).
    """
    found = {name: TimeTest() for name in series}
    if not series:
        return found
    family = len(series) if family is None else family
    common = next(iter(rules.values()))
    schedule = Schedule.of(common, next(iter(series.values())).per_life)
    for index, share in enumerate(schedule.shares):
        blocks = schedule.blocks(index)
        open_ = [n for n in series if not found[n].settled and len(series[n]) >= blocks]
        for name in open_:
            found[name] = _look(series[name].first(blocks), rules[name], index, seed)
        regressed = sum(outcome.word == "REGRESSION" for outcome in found.values())
        alpha = common.alpha * share * alpha_scale
        levels = holm_levels({n: found[n].p_regression for n in open_}, family - regressed, alpha)
        for name in open_:
            outcome, pass_alpha = found[name], common.pass_alpha * share
            word: Word = "INCONCLUSIVE"
            if within(outcome.p_regression, levels[name]):
                word = "REGRESSION"
            elif within(outcome.p_pass, pass_alpha):
                word = "PASS"
            found[name] = dataclasses.replace(
                outcome, word=word, alpha=levels[name], pass_alpha=pass_alpha
            )
    return found


def _look(blocks: Blocks, rule: GateRule, index: int, seed: int) -> TimeTest:
    if not blocks.some_worked(candidate=False):
        return TimeTest(look=index)
    floor, draws = rule.min_effect_s, rule.draws
    tolerance, margin = math.log1p(rule.tolerance), math.log1p(rule.margin)
    slow, _ = p_values(blocks, tolerance, floor, draws=draws, seed=seed)
    _, fast = p_values(blocks, margin, floor, draws=draws, seed=seed)
    if blocks.per_process is None:
        return TimeTest(look=index, p_regression=slow, p_pass=fast)
    processes = ProcessTest.of(blocks)
    least = math.log1p(floor / blocks.median())
    slow = max(slow, processes.tails(max(tolerance, least))[0])
    fast = max(fast, processes.tails(max(margin, least))[1])
    return TimeTest(look=index, p_regression=slow, p_pass=fast, processes=processes)


def holm_levels(found: Mapping[_Key, float | None], family: int, alpha: float) -> dict[_Key, float]:
    """Returns the level of each hypothesis under Holm's step-down procedure among `family`.

    A hypothesis is rejected exactly when its p-value is within its level.
    """
    order = sorted(found, key=lambda name: _or_one(found[name]))
    rejected, levels = 0, {}
    for name in order:
        levels[name] = alpha / (family - rejected)
        rejected += within(found[name], levels[name])
    return levels


def _or_one(p: float | None) -> float:
    return 1.0 if p is None else p
