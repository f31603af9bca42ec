"""Forecast of a comparison: its length and its chance of a verdict, from the noise passport."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from orbax_bench_core.analysis.noise.passport import Passport
from orbax_bench_core.config import ARMS, GateConfig
from orbax_bench_core.records import host_provenance, storage_provenance
from orbax_bench_core.sweep import SweepEntry, baseline_point


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Forecast of the comparison of one point.

    Attributes:
        operation: The primary operation that takes longest to judge.
        sigma: Its noise.
        operations: Mean number of operations per arm until a verdict or the last look.
        minutes: What they take, both arms together.
        chance: Chance of a verdict by the last look.
        detectable: Smallest relative slow-down that is found nine times in ten by the last look.
    """

    operation: str
    sigma: float
    operations: float
    minutes: float
    chance: float
    detectable: float


def expected(
    point: SweepEntry,
    gate: GateConfig,
    passport: Passport,
    *,
    storage: str | None = None,
    cpu: str | None = None,
) -> Expectation | None:
    """Returns what a comparison of a point will probably take if nothing has changed.

    Args:
        point: A point or a pair.
        gate: When a difference counts.
        passport: How noisy operations are here.
        storage: Kind of storage; None takes any.
        cpu: Model of the CPU; None takes any.

    Returns:
        What the primary operation takes that needs longest; None when the passport knows none.
    """
    from orbax_bench_core.gate import plan_operations

    entries = {
        operation: entry
        for operation in gate.primary
        if (entry := passport.entry(point, operation, storage=storage, cpu=cpu)) is not None
    }
    if not entries:
        return None
    plans = plan_operations({name: entry.sigma for name, entry in entries.items()}, gate)
    slowest = max(plans, key=lambda name: (plans[name].operations, entries[name].sigma))
    operations = plans[slowest].operations
    return Expectation(
        operation=slowest,
        sigma=entries[slowest].sigma,
        operations=operations,
        minutes=len(ARMS) * operations * entries[slowest].repeat_s / 60,
        chance=min(plan.verdict for plan in plans.values()),
        detectable=max(plan.detectable for plan in plans.values()),
    )


def forecast(points: Sequence[SweepEntry], gate: GateConfig, passport: Passport, root: str) -> str:
    """Returns what a comparison of points on this machine will probably take, one line for people.

    Points that name no storage have their data in the run directory, `root`.
    """
    cpu = host_provenance()["host"]["cpu"]
    kinds = [storage_provenance(baseline_point(point).storage or root)["type"] for point in points]
    each = [
        expected(point, gate, passport, storage=storage, cpu=cpu)
        for point, storage in zip(points, kinds, strict=True)
    ]
    known = [expectation for expectation in each if expectation is not None]
    if not known:
        return (
            f"The noise passport knows nothing like these points on {', '.join(sorted({*kinds}))}: "
            "`orbax-bench calibrate` can take this run into it."
        )
    # Points that the passport does not know will take about as long as those that it does.
    minutes = sum(expectation.minutes for expectation in known) * len(points) / len(known)
    hardest = max(known, key=lambda expectation: expectation.operations)
    return (
        f"A verdict will probably take {hardest.operations:.0f} operations per arm and point, "
        f"{_wait(minutes)} in all; {hardest.operation} has a noise of {100 * hardest.sigma:.2g} %, "
        f"so slow-downs from {100 * hardest.detectable:.2g} % on are found, and "
        f"{100 * hardest.chance:.0f} % of such comparisons end in a verdict."
    )


def _wait(minutes: float) -> str:
    if minutes < 1:
        return f"{60 * minutes:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
