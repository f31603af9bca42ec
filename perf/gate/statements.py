"""Claims on what is said beside a verdict: detectable slow-downs, and intervals."""

import math
from collections.abc import Sequence

from orbax_bench_core.config import MAX_PRIMARY, GateRule
from perf.gate.cells import Cell
from perf.gate.claims import Claim
from perf.gate.designs import LIVES, ONE_WORKER, Design, with_tau
from perf.gate.experiments import claimed
from perf.gate.rules import EXPECTED_TAU, POINTS, RULE, SOMEWHAT_SLOWER

_DESIGNS = (ONE_WORKER, with_tau(LIVES, 0.02), with_tau(LIVES, 0.05))
_POWERS = (0.8, 0.9)


def detectable(series: int, sigmas: Sequence[float]) -> list[Claim]:
    """The slow-down that is said to be detectable is found as often as is said."""
    return [
        _found(design, sigma, look, power, RULE, series)
        for design in _DESIGNS
        for sigma in sigmas
        for look in range(len(RULE.looks))
        for power in _POWERS
    ]


def shared(series: int) -> list[Claim]:
    """The same for one of three primary operations, whose factors are not fits of their own."""
    rule = GateRule(alpha=RULE.alpha / MAX_PRIMARY)
    return [
        _found(design, 0.2, look, power, rule, series)
        for design in (ONE_WORKER, with_tau(LIVES, EXPECTED_TAU))
        for look in (1, 3)
        for power in _POWERS
    ]


def _found(
    design: Design, sigma: float, look: int, power: float, rule: GateRule, series: int
) -> Claim:
    case = {"sigma": sigma, "look": look, "power": power, "rule": rule}
    cell = Cell(kind="detectable", series=series, design=design, **case)
    alone = rule == RULE
    title = design.title if alone else f"{design.title}, a third of alpha"
    name = f"sd {sigma:.0%}, N = {rule.looks_of(design.per_life)[look]}: {1 + claimed(cell):.3f}"
    # Lives find a little more than is said, and never much less.
    sense = "near" if alone and design is ONE_WORKER else "at least"
    group = f"{title}: found of what is detectable at {power:.0%}"
    return Claim(group, cell, "regression", sense, power, POINTS, name=name)


def intervals(series: int) -> list[Claim]:
    """Intervals at the look that stopped: they cover the truth, and agree with the verdict."""
    found = []
    for design in _DESIGNS:
        for cv in (0.05, 0.2):
            sigma = math.sqrt(math.log1p(cv**2))
            for ratio in (1.0, SOMEWHAT_SLOWER):
                cell = Cell(kind="interval", series=series, design=design, sigma=sigma, ratio=ratio)
                name = f"CV {cv:.0%}, ratio {ratio:.2f}"
                group = f"{design.title}: intervals that cover the truth, at the verdict"
                found.append(Claim(group, cell, "covered", "at least", 0.95, name=name))
                group = f"{design.title}: intervals that contradict their verdict"
                found.append(Claim(group, cell, "contrary", "never", name=name))
    return found
