"""Ways to save side by side: blocking, in the background, continuous, and in two tiers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from orbax_bench_core.errors import UserError
from orbax_bench_core.plan.goodput import formulas
from orbax_bench_core.plan.goodput.job import Job
from orbax_bench_core.plan.goodput.simulation import simulate, simulate_two_tiers, waits_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

Name = Literal["sync", "async", "continuous", "multi-tier"]
Method = Literal["formula", "simulated"]

_STEPS: Final = 25
_AROUND: Final = 6.0
_DAY_H: Final = 24.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One way to save, at one interval.

    Attributes:
        name: The way.
        interval_s: Useful seconds between saves to storage.
        local_interval_s: Useful seconds between local saves; None without a local tier.
        goodput: Useful share of all time.
        method: How that is known.
        is_best: Whether the interval is the best of this way; otherwise it was given.
    """

    name: Name
    interval_s: float
    local_interval_s: float | None = None
    goodput: float
    method: Method
    is_best: bool = True

    @property
    def waste(self) -> float:
        """Share of all time that is of no use."""
        return 1 - self.goodput


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GoodputPlan:
    """Goodput of a job by each way to save.

    Attributes:
        job: The job.
        strategies: Each way at its best interval and, where one was given, at that.
        young_s: Young's interval for saves in the background.
        daly_s: Daly's.
        availability_s: The interval that is best for availability.
        price_per_hour: Price of an hour of one device; None without a price.
        currency: Of the price.
        price_note: When and where the price was taken.
    """

    job: Job
    strategies: tuple[Strategy, ...]
    young_s: float
    daly_s: float
    availability_s: float
    price_per_hour: float | None = None
    currency: str = ""
    price_note: str = ""

    @property
    def best(self) -> Strategy:
        """The way with the most goodput."""
        return max(self.strategies, key=lambda strategy: strategy.goodput)

    def wasted_device_hours(self, strategy: Strategy) -> float | None:
        """Returns the device-hours of a day that are of no use; None without devices."""
        return None if self.job.devices is None else strategy.waste * self.job.devices * _DAY_H

    def wasted_money(self, strategy: Strategy) -> float | None:
        """Returns what these cost; None without a price."""
        hours = self.wasted_device_hours(strategy)
        return None if hours is None or self.price_per_hour is None else hours * self.price_per_hour

    def table(self) -> pd.DataFrame:
        """Returns a row per way and interval.

        Columns: `strategy`, `interval_s`, `local_interval_s`, `steps` (between saves), `goodput`,
        `method`, `is_best`, `wasted_device_hours_per_day`, `wasted_money_per_day`, `currency`.
        """
        import pandas as pd

        step = self.job.step_s
        return pd.DataFrame(
            {
                "strategy": found.name,
                "interval_s": found.interval_s,
                "local_interval_s": found.local_interval_s,
                "steps": None if step is None else max(1, round(found.interval_s / step)),
                "goodput": found.goodput,
                "method": found.method,
                "is_best": found.is_best,
                "wasted_device_hours_per_day": self.wasted_device_hours(found),
                "wasted_money_per_day": self.wasted_money(found),
                "currency": self.currency or None,
            }
            for found in self.strategies
        )


def plan_goodput(
    job: Job,
    *,
    interval_s: float | None = None,
    price: tuple[float, str, str] | None = None,
    seed: int = 0,
) -> GoodputPlan:
    """Compares the ways in which a job may save.

    Where interval, recovery and background part together take more than a quarter of the time
    between failures, formulas are off by more than half a point, and failures are simulated.
    """
    if interval_s is not None and not 0 < interval_s < float("inf"):
        raise UserError(f"the interval must be more than 0 seconds, got {interval_s:g}")
    ways = [_Way("sync", job, job.save_s, 0.0, 0.0, seed)]
    if job.background_s:
        ways.append(_Way("async", job, job.blocking_s, job.background_s, job.slowdown, seed))
    strategies = [way.best() for way in ways]
    if job.background_s:
        continuous = job.background_s * (1 - job.slowdown)
        strategies.append(ways[-1].at(continuous, name="continuous"))
    if job.local is not None:
        strategies.append(_two_tiers(job, seed))
    if interval_s is not None:
        strategies += [way.at(interval_s, is_best=False) for way in ways]
    cost = ways[-1].cost
    number, currency, note = price or (None, "", "")
    return GoodputPlan(
        job=job,
        strategies=tuple(strategies),
        young_s=formulas.young(cost, job.mtbf_s),
        daly_s=formulas.daly(cost, job.mtbf_s),
        availability_s=formulas.availability_interval(cost, job.mtbf_s, job.recovery_s),
        price_per_hour=number,
        currency=currency,
        price_note=note,
    )


@dataclasses.dataclass(frozen=True)
class _Way:
    """Saves to one tier."""

    name: Name
    job: Job
    blocking: float
    background: float
    slowdown: float
    seed: int

    @property
    def cost(self) -> float:
        """Seconds that a save costs, its background part by what it slows down."""
        return self.blocking + self.slowdown * self.background

    @property
    def least(self) -> float:
        """Shortest interval: the next save waits for the background part of the last one."""
        return max(1e-3, self.background * (1 - self.slowdown))

    def at(self, tau: float, *, name: Name | None = None, is_best: bool = True) -> Strategy:
        """Returns the goodput at an interval."""
        tau, job = max(tau, self.least), self.job
        holds = formulas.holds(tau, job.recovery_s, self.background, job.mtbf_s)
        if not holds:
            found, method = self._simulated(tau, waits_of(job.mtbf_s, self.seed)), "simulated"
        else:
            wasted = formulas.waste(
                tau, self.blocking, job.mtbf_s, job.recovery_s, self.background, self.slowdown
            )
            found, method = formulas.goodput(wasted), "formula"
        return Strategy(
            name=name or self.name,
            interval_s=tau,
            goodput=found,
            method=method,  # type: ignore[arg-type]
            is_best=is_best,
        )

    def best(self) -> Strategy:
        """Returns the best interval: Daly's, or a searched one where formulas do not hold."""
        job = self.job
        tau = max(self.least, formulas.daly(max(self.cost, 1e-6), job.mtbf_s))
        if formulas.holds(tau, job.recovery_s, self.background, job.mtbf_s):
            return self.at(tau)
        waits = waits_of(job.mtbf_s, self.seed)
        return self.at(
            _searched(lambda interval: self._simulated(interval, waits), tau, self.least)
        )

    def _simulated(self, tau: float, waits: np.ndarray) -> float:
        return simulate(
            tau,
            self.blocking,
            self.background,
            self.slowdown,
            self.job.recovery_s,
            waits,
        )


def _searched(value: Callable[[float], float], around: float, least: float) -> float:
    """Returns the best interval of a grid around one, in equal ratios."""
    ratio = _AROUND ** (2 / (_STEPS - 1))
    grid = [max(least, around / _AROUND * ratio**step) for step in range(_STEPS)]
    best: float = max(grid, key=value)
    return best


def _two_tiers(job: Job, seed: int) -> Strategy:
    assert job.local is not None
    costs = (job.local.blocking_s, job.blocking_s + job.slowdown * job.background_s)
    share, mtbf = job.local.share, job.mtbf_s
    taus = formulas.two_tier_intervals((max(costs[0], 1e-6), max(costs[1], 1e-6)), share, mtbf)
    taus = min(taus), max(taus[1], job.background_s * (1 - job.slowdown))
    recoveries = (job.local.recovery_s, job.recovery_s)
    longest = max(recoveries)
    # What is lost with storage alone is rare: its interval counts by its share of failures.
    if formulas.holds(max(taus[0], (1 - share) * taus[1]), longest, job.background_s, mtbf):
        wasted = formulas.two_tier_waste(taus, costs, recoveries, share, mtbf)
        wasted += (1 - share) * job.background_s / mtbf
        found, method = formulas.goodput(wasted), "formula"
    else:
        found, method = simulate_two_tiers(taus, job, seed), "simulated"
    return Strategy(
        name="multi-tier",
        interval_s=taus[1],
        local_interval_s=taus[0],
        goodput=found,
        method=method,  # type: ignore[arg-type]
    )
