"""Claims on what is said beside a verdict: detectable slow-downs, and intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

from orbax_bench_core.config import MAX_PRIMARY, GateRule
from perf.gate.cells import Cell
from perf.gate.claims import Claim
from perf.gate.designs import LIVES, ONE_WORKER, with_tau
from perf.gate.experiments import claimed
from perf.gate.rules import EXPECTED_TAU, POINTS, RULE, SOMEWHAT_SLOWER


def detectable(series: int, sigmas: Sequence[float]) -> list[Claim]:
    """The slow-down that is said to be detectable is found as often as is said."""
    found = []
    for design in (ONE_WORKER, with_tau(LIVES, 0.02), with_tau(LIVES, 0.05)):
        for sigma in sigmas:
            for look in range(len(RULE.looks)):
                for power in (0.8, 0.9):
                    cell = Cell(
                        kind="detectable",
                        series=series,
                        design=design,
                        sigma=sigma,
                        look=look,
                        power=power,
                    )
                    at = RULE.looks_of(design.per_life)[look]
                    found.append(
                        Claim(
                            group=f"{design.title}: found of what is detectable at {power:.0%}",
                            name=f"sd {sigma:.0%}, N = {at}: {1 + claimed(cell):.3f}",
                            cell=cell,
                            seen="regression",
                            # Lives find a little more than is said, and never much less.
                            sense="near" if design is ONE_WORKER else "at least",
                            limit=power,
                            slack=POINTS,
                        )
                    )
    return found


def shared(series: int) -> list[Claim]:
    """The same for one of three primary operations, whose factors are not fits of their own."""
    found = []
    rule = GateRule(alpha=RULE.alpha / MAX_PRIMARY)
    for design in (ONE_WORKER, with_tau(LIVES, EXPECTED_TAU)):
        for look in (1, 3):
            for power in (0.8, 0.9):
                cell = Cell(
                    kind="detectable",
                    series=series,
                    design=design,
                    sigma=0.2,
                    look=look,
                    power=power,
                    rule=rule,
                )
                at = rule.looks_of(design.per_life)[look]
                found.append(
                    Claim(
                        group=f"{design.title}, a third of alpha: found of what is at {power:.0%}",
                        name=f"sd 20%, N = {at}: {1 + claimed(cell):.3f}",
                        cell=cell,
                        seen="regression",
                        sense="at least",
                        limit=power,
                        slack=POINTS,
                    )
                )
    return found


def intervals(series: int) -> list[Claim]:
    """Intervals at the look that stopped: they cover the truth, and agree with the verdict."""
    found = []
    for design in (ONE_WORKER, with_tau(LIVES, 0.02), with_tau(LIVES, 0.05)):
        for cv in (0.05, 0.2):
            sigma = math.sqrt(math.log1p(cv**2))
            for ratio in (1.0, SOMEWHAT_SLOWER):
                cell = Cell(kind="interval", series=series, design=design, sigma=sigma, ratio=ratio)
                name = f"CV {cv:.0%}, ratio {ratio:.2f}"
                found += [
                    Claim(
                        group=f"{design.title}: intervals that cover the truth, at the verdict",
                        name=name,
                        cell=cell,
                        seen="covered",
                        sense="at least",
                        limit=0.95,
                    ),
                    Claim(
                        group=f"{design.title}: intervals that contradict their verdict",
                        name=name,
                        cell=cell,
                        seen="contrary",
                        sense="never",
                    ),
                ]
    return found
