"""Slow-down that a comparison detects, and its expected length: a normal process at the looks.

At look k the test behaves like a normal variable Z_k with mean 0 and variance 1, a sum of
increments over the square root of the operations, that a true log ratio t moves:

    REGRESSION if  a_k  (t - log(1 + tolerance)) / se_k + Z_k > c_k,
    PASS       if  a'_k (log(1 + margin) - t)    / se_k - Z_k > c'_k,

with the standard error se_k = sigma sqrt(2 / N_k). Both boundaries count, for a PASS that comes
first ends the search. The factors a and c are fits to the test itself. Where the arms share
workers, a PASS is also of what a job pays: an estimate that the order of the arms makes less
certain, with its own se_k and a process of which Z_k is a part.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Final, NamedTuple, Self, TypedDict, Unpack

import numpy as np

from orbax_bench_core.config import BLOCK_SIZE, PER_ARM, GateRule
from orbax_bench_core.gate.blocks import Floats
from orbax_bench_core.gate.looks import Schedule

POWER: Final = 0.9
"""Share of the slow-downs of the detectable size that are found."""

LIKELY: Final = 0.8

_PATHS: Final = 20_000
"""Simulated comparisons: the standard error of a chance of 90 % is 0.2 %."""
_SEED: Final = 20_240_229
_ORDERS: Final = math.comb(BLOCK_SIZE, PER_ARM)

_JOB: Final = 1.75
"""Standard error of what a job pays over that of the ratio as ranks estimate it: arms alternate
more often than not, so that the order tells an own effect from an after-effect the less. 1.88 by
the orders themselves, and less for what ranks lose; simulated with 20 % of noise."""

_EFFICIENCY: Final = 0.955
"""Asymptotic efficiency of ranks against means under normal noise, 3 / pi."""

_DEMAND: Final = (0.0, 0.25, 0.35, 0.43, 0.58, 0.74, 0.77, 0.964, 1.0)
_SLOPE: Final = (0.94, 0.93, 0.92, 0.89, 0.845, 0.803, 0.782, 0.557, 0.5)
_MORE: Final = (0.02, 0.03, 0.05, 0.0, 0.0, 0.035, 0.04, -0.42, -0.42)
"""a, and c less the normal quantile of the level, by how much is demanded of the blocks: the log of
the level over that of the smallest p-value that they can give. Probit fits to 16 looks lie on these
lines to about .03: what is claimed to be found in 8 or 9 of 10 cases is found hardly less often
(see `perf.gate`)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chances:
    """Chances of each word for one primary operation by its time."""

    regression: float  # chance of REGRESSION
    passes: float  # chance of PASS

    @property
    def open(self) -> float:
        """Chance of INCONCLUSIVE."""
        return max(0.0, 1.0 - self.regression - self.passes)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Boundaries:
    """For each path and look, the log ratio from which on, or up to which, a verdict is given."""

    regression: Floats  # REGRESSION from this log ratio on, shape (paths, looks)
    passes: Floats  # PASS below this log ratio, same shape

    def detected(self) -> Floats:
        """Returns for each path the log ratio from which on it ends in REGRESSION, shape (paths,).

        A path that passes at an earlier look does not get there, so that ratio has to be beyond
        those at which it passes before.
        """
        earlier = np.maximum.accumulate(self.passes, axis=1)[:, :-1]
        before = np.concatenate([np.full((len(earlier), 1), -np.inf), earlier], axis=1)
        return np.asarray(np.maximum(self.regression, before).min(axis=1), dtype=np.float64)

    def verdict_by_look(self, log_ratio: float) -> tuple[float, ...]:
        """Returns the share of paths that have a verdict by each look."""
        ends = (log_ratio > self.regression) | (log_ratio < self.passes)
        return tuple(np.maximum.accumulate(ends, axis=1).mean(axis=0).tolist())

    def chances(self, log_ratio: float) -> Chances:
        """Returns the shares of paths that end in each word; the first verdict ends a path."""
        slow, fast = log_ratio > self.regression, log_ratio < self.passes
        by, never = np.arange(slow.shape[1]), slow.shape[1]
        first_slow = np.where(slow, by, never).min(axis=1)
        first_fast = np.where(fast, by, never).min(axis=1)
        regression = float(((first_slow < never) & (first_slow <= first_fast)).mean())
        return Chances(regression=regression, passes=float((first_fast < first_slow).mean()))


class _Noise(NamedTuple):
    """Noise of one operation, with what differs from process to process."""

    own: float  # of its own time
    job: float  # of that and what it costs the next operation

    @classmethod
    def of(cls, sigma: float, per_life: int, tau: float) -> Self:
        """Returns it for one within a process, and an offset of each process.

        Operations of a life follow others of its own arm, so that a job's time is their own.
        """
        own = math.hypot(sigma, tau * math.sqrt(per_life))
        return cls(own, own if per_life > 1 else math.hypot(_JOB * sigma, tau))


class Setting(TypedDict, total=False):
    """In what a comparison is made; every key may be left out.

    Attributes:
        per_life: Operations of one life of a worker; 1 by default.
        tau: Standard deviation of a process's offset, in log time; 0 by default.
        baseline_s: Typical seconds of the baseline, which turn `min_effect_s` into a share; without
            it a slow-down of any seconds counts.
        alpha_scale: Share of alpha that the point has; 1 by default.
        first_pass: Operations per arm before which a limit on stalls or failures allows no PASS; 0
            by default.
    """

    per_life: int
    tau: float
    baseline_s: float | None
    alpha_scale: float
    first_pass: int


def detectable(
    sigma: float,
    operations: int,
    rule: GateRule,
    *,
    power: float = POWER,
    **setting: Unpack[Setting],
) -> float:
    """Returns the smallest relative slow-down that is found by so many operations.

    It is infinite where the blocks are too few for the level of every look.

    Args:
        sigma: Standard deviation of the log time of one operation.
        operations: Operations per arm.
        rule: Tolerance, margin, levels and looks.
        power: Probability with which it is found.
        setting: See `Setting`.

    Returns:
        A share: 0.1 for a candidate that takes 10 % longer.
    """
    (found,) = detectable_at((power,), sigma, operations, rule, **setting)
    return found


def detectable_at(
    powers: Sequence[float],
    sigma: float,
    operations: int,
    rule: GateRule,
    **setting: Unpack[Setting],
) -> tuple[float, ...]:
    """Returns `detectable` for each of several powers, of one simulation.

    Args:
        powers: Probabilities with which a slow-down is found, each above 0 and below 1.
        sigma: Standard deviation of the log time of one operation.
        operations: Operations per arm.
        rule: Tolerance, margin, levels and looks.
        setting: All else that is known.

    Returns:
        A share for each power: 0.1 for a candidate that takes 10 % longer; infinite where the
        blocks are too few for the level of every look.
    """
    per_life = setting.get("per_life", 1)
    of_rule, every = rule.looks_of(per_life), Schedule.of(rule, per_life).looks
    looks = max(1, sum(look <= operations for look in every))
    paths = _paths(every if looks > len(of_rule) else of_rule)[:, :, :looks]
    if looks == 1:
        # Nothing can have passed before, so the order of the paths decides alone, and it is known.
        paths = _at_powers(of_rule, tuple(powers))
    ends = _boundaries(paths, sigma, rule, setting).detected()
    if looks > 1:
        ends = np.quantile(ends, list(powers), method="higher")
    return tuple(map(math.expm1, ends.tolist()))


def chances_of(
    sigma: float, rule: GateRule, slow_downs: Sequence[float], **setting: Unpack[Setting]
) -> tuple[Chances, ...]:
    """Returns the chances of each word for each of several true slow-downs, at one noise.

    Args:
        sigma: Standard deviation of the log time of one operation.
        rule: Tolerance, margin, levels and looks.
        slow_downs: Shares: 0.1 for a candidate that takes 10 % longer.
        setting: See `Setting`.
    """
    found = boundaries(sigma, rule, **setting)
    return tuple(found.chances(math.log1p(slow_down)) for slow_down in slow_downs)


def boundaries(sigma: float, rule: GateRule, **setting: Unpack[Setting]) -> Boundaries:
    """Returns the word of each of 20,000 fixed paths at all looks.

    A path is the estimate of the log ratio at each look, in standard errors, of a normal process
    with independent increments. All calls share them, so that two rules differ by the rules alone.

    Args:
        sigma: Standard deviation of the log time of one operation.
        rule: Tolerance, margin, levels and looks.
        setting: All else that is known.
    """
    return _boundaries(_paths(rule.looks_of(setting.get("per_life", 1))), sigma, rule, setting)


def _boundaries(paths: Floats, sigma: float, rule: GateRule, setting: Setting) -> Boundaries:
    """Returns the words of paths at all their looks, shape (paths, looks)."""
    per_life, baseline_s = setting.get("per_life", 1), setting.get("baseline_s")
    noise = _Noise.of(sigma, per_life, setting.get("tau", 0.0))
    floor = rule.min_effect_s / baseline_s if baseline_s else 0.0
    schedule, (own, apart) = Schedule.of(rule, per_life), paths
    more = noise.job / noise.own if noise.own else 1.0
    job = (own + math.sqrt(more**2 - 1) * apart) / more
    lower, upper = math.log1p(max(rule.tolerance, floor)), math.log1p(max(rule.margin, floor))
    regression, passes = np.empty_like(own), np.full_like(own, -np.inf)
    for look, share in enumerate(schedule.shares[: own.shape[1]]):
        scale = math.sqrt(2 / schedule.looks[look])
        error = noise.own * scale
        blocks = schedule.blocks(look)
        slope, quantile = _fit(blocks, rule.alpha * share * setting.get("alpha_scale", 1.0))
        regression[:, look] = _from(lower, error, slope, quantile - own[:, look])
        if schedule.looks[look] < setting.get("first_pass", 0):
            continue
        # A PASS is a REGRESSION mirrored at the margin: from it on downward, with Z of the other
        # sign.
        slope, quantile = _fit(blocks, rule.pass_alpha * share)
        passes[:, look] = 2 * upper - _from(upper, error, slope, quantile + own[:, look])
        of_job = 2 * upper - _from(upper, noise.job * scale, slope, quantile + job[:, look])
        passes[:, look] = np.minimum(passes[:, look], of_job)
    return Boundaries(regression=regression, passes=passes)


def standard_error(sigma: float, operations: int) -> float:
    """Returns the standard error of the log ratio that ranks give from N operations per arm.

    It is sigma * sqrt(2 / (E N)), where E is the efficiency of ranks against means.

    Args:
        sigma: Standard deviation of the log time of one operation.
        operations: N.
    """
    return sigma * math.sqrt(2 / (_EFFICIENCY * operations))


def _from(null: float, error: float, slope: float, quantiles: Floats) -> Floats:
    """Returns the log ratios from which on a look rejects a null."""
    if slope <= 0:
        return np.full_like(quantiles, np.inf)
    return null + quantiles * error / slope


def _fit(blocks: int, level: float) -> tuple[float, float]:
    """Returns a and c; a is 0 where the blocks are too few to reach the level."""
    from scipy.special import ndtri

    demand = math.log(level) / -(blocks * math.log(_ORDERS))
    if demand > 1:
        return 0.0, 0.0
    slope, more = np.interp(demand, _DEMAND, _SLOPE), np.interp(demand, _DEMAND, _MORE)
    return float(slope), float(ndtri(1 - level) + more)


@functools.lru_cache(maxsize=64)
def _paths(looks: tuple[int, ...]) -> Floats:
    """Returns two normal processes at the looks, shape (2, paths, looks)."""
    rng = np.random.default_rng(_SEED)
    steps = np.sqrt(np.diff((0, *looks)))
    found = np.stack(
        [(rng.standard_normal((_PATHS, len(looks))) * steps).cumsum(axis=1) for _ in range(2)]
    ) / np.sqrt(looks)
    found.flags.writeable = False
    return found


@functools.lru_cache(maxsize=64)
def _at_powers(looks: tuple[int, ...], powers: tuple[float, ...]) -> Floats:
    """Returns the paths that decide at the first look, shape (2, powers, 1).

    The higher a path, the smaller the slow-down that it finds: at power p it is found by the path
    that comes at the place p among all of them, the highest first.
    """
    own = _paths(looks)[0, :, 0]
    descending = own.argsort()[::-1]
    places = descending[[math.ceil(power * (_PATHS - 1)) for power in powers]]
    return np.asarray(_paths(looks)[:, places, :1])
