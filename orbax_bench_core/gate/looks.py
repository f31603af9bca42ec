"""Group-sequential looks: the error that each may spend, and the verdict at the first that settles.

Every look is a chance to be wrong, so the looks share the error: look k of n may spend the share
k / (1 + ... + n) of alpha, little at first and more later. With four looks and alpha 1 % that is
.001, .002, .003 and .004. The sum bounds the error of all looks by Bonferroni's inequality,
whatever the dependence between them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import PER_ARM, Blocks
from orbax_bench_core.gate.rank_test import p_values
from orbax_bench_core.gate.verdict import Word

_ROUNDING = 1 + 1e-12


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of the looks at one series.

    Attributes:
        word: The first verdict, or INCONCLUSIVE.
        look: Index of the look that gave it, or of the last one that the data reach; None when
            they reach none.
        p_regression: P-value at that look when the ratio is the tolerance; None without a look.
        p_pass: P-value at that look when the ratio is the margin; None without a look.
    """

    word: Word = "INCONCLUSIVE"
    look: int | None = None
    p_regression: float | None = None
    p_pass: float | None = None

    @property
    def settled(self) -> bool:
        """Whether a verdict stands."""
        return self.word != "INCONCLUSIVE"


def shares(rule: GateRule) -> tuple[float, ...]:
    """Returns the share of alpha that each look may spend; they sum to 1."""
    looks = len(rule.looks)
    return tuple(2 * (index + 1) / (looks * (looks + 1)) for index in range(looks))


def settle(
    series: Mapping[str, Blocks],
    rules: Mapping[str, GateRule],
    *,
    family: int | None = None,
    alpha_scale: float = 1.0,
    seed: int = 0,
) -> dict[str, Outcome]:
    """Looks at several series as their data come in, and stops each at its first verdict.

    REGRESSION is given under Holm's procedure at each look: a point has regressed when any of its
    series has, so together they may be wrong with probability alpha. A series that has regressed
    leaves the others a larger share from then on. PASS is given to each series at its own level: a
    point passes only when all of its series do, which is an intersection-union test and needs no
    correction (R. L. Berger, "Multiparameter hypothesis testing and acceptance sampling",
    Technometrics 24 (1982) 295).

    Args:
        series: What was measured, by name.
        rules: The rule of each. All have the looks and levels of the first.
        family: Number of series that share alpha, at least as many as are given; by default those.
        alpha_scale: Share of alpha that this family has of a larger one.
        seed: Seed of random orders, where there are too many blocks to count all.
    """
    found = {name: Outcome() for name in series}
    if not series:
        return found
    family = len(series) if family is None else family
    common = next(iter(rules.values()))
    for index, share in enumerate(shares(common)):
        blocks = common.looks[index] // PER_ARM
        open_ = [n for n in series if not found[n].settled and len(series[n]) >= blocks]
        for name in open_:
            found[name] = _look(series[name].first(blocks), rules[name], index, seed)
        regressed = sum(outcome.word == "REGRESSION" for outcome in found.values())
        alpha = common.alpha * share * alpha_scale
        for name in _holm({n: found[n].p_regression for n in open_}, family - regressed, alpha):
            found[name] = dataclasses.replace(found[name], word="REGRESSION")
        for name in open_:
            passes = _within(found[name].p_pass, common.pass_alpha * share)
            if passes and not found[name].settled:
                found[name] = dataclasses.replace(found[name], word="PASS")
    return found


def _look(blocks: Blocks, rule: GateRule, index: int, seed: int) -> Outcome:
    slow, _ = p_values(blocks, math.log1p(rule.tolerance), draws=rule.draws, seed=seed)
    _, fast = p_values(blocks, math.log1p(rule.margin), draws=rule.draws, seed=seed)
    return Outcome(look=index, p_regression=slow, p_pass=fast)


def _holm(found: Mapping[str, float | None], family: int, alpha: float) -> Sequence[str]:
    """Returns what Holm's step-down procedure rejects among `family` hypotheses."""
    rejected: list[str] = []
    for name in sorted(found, key=lambda name: _or_one(found[name])):
        if not _within(found[name], alpha / (family - len(rejected))):
            break
        rejected.append(name)
    return rejected


def _within(p: float | None, alpha: float) -> bool:
    return _or_one(p) <= alpha * _ROUNDING


def _or_one(p: float | None) -> float:
    return 1.0 if p is None else p
