"""Ways to save side by side: blocking, in the background, continuous, and in two tiers.

Failures come at random, M seconds apart in the mean. A way blocks for d at each save, whose
background part takes B and the share s of the speed; tau is the useful time between two saves.
After a failure, the recovery R and the first tau + d + B must pass before a save is safe; from
then on one becomes safe every P = d + max(B, tau + s B). The saves that are safe before the next
failure are, in the mean, exp(-(R + tau + d + B) / M) / (1 - exp(-P / M)), and the goodput is tau
/ M times that. With B = 0 it is the complete expression of J. T. Daly, "A higher order estimate
of the optimum checkpoint interval for restart dumps" (2006).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from orbax_bench_core.errors import UserError
from orbax_bench_core.plan.goodput.job import Job

if TYPE_CHECKING:
    import pandas as pd

Name = Literal["sync", "async", "continuous", "multi-tier"]

_DAY_H: Final = 24.0
_LEAST_S: Final = 1e-3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One way to save, at one interval."""

    name: Name  # the way
    interval_s: float  # useful seconds between saves to storage
    # useful seconds between local saves; None without a local tier
    local_interval_s: float | None = None
    goodput: float  # useful share of all time, where failures come at random
    is_best: bool = True  # whether the interval is the best of this way; otherwise it was given

    @property
    def waste(self) -> float:
        """Share of all time that is of no use."""
        return 1 - self.goodput


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GoodputPlan:
    """Goodput of a job by each way to save."""

    job: Job
    strategies: tuple[Strategy, ...]  # each at its best interval and, where one was given, at that
    # best interval of saves in the background by J. W. Young's first order, sqrt(2 C M) for a save
    # that costs C (1974)
    young_s: float

    @property
    def best(self) -> Strategy:
        """The way with the most goodput."""
        return max(self.strategies, key=lambda strategy: strategy.goodput)

    def wasted_device_hours(self, strategy: Strategy) -> float | None:
        """Returns the device-hours of a day that are of no use; None without devices."""
        return None if self.job.devices is None else strategy.waste * self.job.devices * _DAY_H

    def table(self) -> pd.DataFrame:
        """Returns a row per way and interval.

        Columns: `strategy`, `interval_s`, `local_interval_s`, `steps` (between saves), `goodput`,
        `is_best`, `wasted_device_hours_per_day`.
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
                "is_best": found.is_best,
                "wasted_device_hours_per_day": self.wasted_device_hours(found),
            }
            for found in self.strategies
        )


def plan_goodput(job: Job, *, interval_s: float | None = None) -> GoodputPlan:
    """Compares the ways in which a job may save.

    Args:
        job: The job.
        interval_s: Useful seconds between saves today, to compare with.

    Raises:
        UserError: The interval is not above 0.
    """
    if interval_s is not None and not 0 < interval_s < math.inf:
        raise UserError(f"the interval must be more than 0 seconds, got {interval_s:g}")
    ways = [_Way("sync", job.mtbf_s, job.recovery_s, job.save_s)]
    if job.background_s:
        ways.append(_background(job, "async"))
    strategies = [way.best() for way in ways]
    if job.background_s:
        strategies.append(_background(job, "continuous").at(0))
    if job.local is not None:
        strategies.append(_two_tiers(job))
    if interval_s is not None:
        strategies += [dataclasses.replace(way.at(interval_s), is_best=False) for way in ways]
    return GoodputPlan(job=job, strategies=tuple(strategies), young_s=ways[-1].young)


@dataclasses.dataclass(frozen=True)
class _Way:
    """Saves to one tier."""

    name: Name
    mtbf: float
    recovery: float
    blocking: float
    background: float = 0.0
    slowdown: float = 0.0

    @property
    def least(self) -> float:
        """Shortest interval: the next save waits for the background part of the last one."""
        return max(_LEAST_S, self.background * (1 - self.slowdown))

    @property
    def young(self) -> float:
        """The best interval to first order."""
        return math.sqrt(2 * (self.blocking + self.slowdown * self.background) * self.mtbf)

    def at(self, tau: float) -> Strategy:
        tau = max(tau, self.least)
        return Strategy(name=self.name, interval_s=tau, goodput=tau * self.rate(tau))

    def best(self) -> Strategy:
        return self.at(_best(lambda tau: tau * self.rate(tau), self.least, self.young))

    def rate(self, wall: float) -> float:
        """Returns saves per second that become safe, with `wall` seconds of work between two."""
        period = self.blocking + max(self.background, wall + self.slowdown * self.background)
        first = self.recovery + self.background + wall + self.blocking
        return math.exp(-first / self.mtbf) / (-math.expm1(-period / self.mtbf) * self.mtbf)


def _background(job: Job, name: Name) -> _Way:
    return _Way(name, job.mtbf_s, job.recovery_s, job.blocking_s, job.background_s, job.slowdown)


def _best(goodput: Callable[[float], float], least: float, near: float) -> float:
    from scipy.optimize import minimize_scalar

    bounds = math.log(least), math.log(max(10 * near, 2 * least))
    found = minimize_scalar(
        lambda log_tau: -goodput(math.exp(log_tau)), bounds=bounds, method="bounded"
    )
    return math.exp(found.x)


def _two_tiers(job: Job) -> Strategy:
    """Returns local saves, every so many of which storage gets as well.

    Failures that local checkpoints survive stretch the work between two saves to storage, by their
    own recoveries; the others are those of one tier. Within 0.3 points of a simulation.
    """
    assert job.local is not None
    share = job.local.share
    local = _Way("multi-tier", job.mtbf_s / share, job.local.recovery_s, job.local.blocking_s)
    tau = local.best().interval_s
    # Storage sees the work between two of its saves through the failures of the local tier.
    stretch = 1 / local.rate(tau)
    storage = dataclasses.replace(_background(job, "multi-tier"), mtbf=job.mtbf_s / (1 - share))

    def goodput(interval: float) -> float:
        return interval * storage.rate(interval / tau * stretch)

    interval = max(tau, _best(goodput, storage.least, storage.young))
    return Strategy(
        name="multi-tier", interval_s=interval, local_interval_s=tau, goodput=goodput(interval)
    )
