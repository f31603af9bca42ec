"""Plan of a comparison: its expected length and power, before it starts."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Unpack

import numpy as np

from orbax_bench_core.config import PER_ARM, GateConfig, GateRule
from orbax_bench_core.gate.looks import Schedule
from orbax_bench_core.gate.power import (
    LIKELY,
    POWER,
    Setting,
    boundaries,
    detectable_at,
    standard_error,
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GatePlan:
    """Expected length and power of a comparison."""

    operations: float  # mean number of operations per arm until a verdict or the last look
    by_look: tuple[float, ...]  # chance of a verdict by each look
    # smallest relative slow-down that is found nine times in ten by the last look
    detectable: float
    detectable_80: float  # the same for eight times in ten

    @property
    def verdict(self) -> float:
        """Chance of a verdict by the last look."""
        return self.by_look[-1]


def plan(
    sigma: float, rule: GateRule | None = None, true_ratio: float = 1.0, **setting: Unpack[Setting]
) -> GatePlan:
    """Returns how long a comparison will probably take in a setting.

    It follows the normal process of `detectable` over the looks, for independent log-normal times.
    Stalls and slow states that the robust sigma leaves out make it take longer, and so do stalls
    and failures that have to be followed up.

    Args:
        sigma: Standard deviation of the log time of one operation: 0.05 is about 5 %.
        rule: Tolerance, margin, levels and looks; by default those of the program.
        true_ratio: Candidate over baseline.
        setting: All else that is known.

    Raises:
        ValueError: A standard deviation is negative or not finite, or `true_ratio` not positive.
    """
    for name, value in (("sigma", sigma), ("tau", setting.get("tau", 0.0))):
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} is {value}; a standard deviation of at least 0 is needed")
    if not (math.isfinite(true_ratio) and true_ratio > 0):
        raise ValueError(f"true_ratio is {true_ratio}; a positive number is needed")
    rule = GateRule() if rule is None else rule
    looks = rule.looks_of(setting.get("per_life", 1))
    by_look = boundaries(sigma, rule, **setting).verdict_by_look(math.log(true_ratio))
    undecided = [1.0, *(1 - share for share in by_look[:-1])]
    steps = np.diff((0, *looks)).tolist()
    most, likely = detectable_at((POWER, LIKELY), sigma, looks[-1], rule, **setting)
    return GatePlan(
        operations=sum(step * share for step, share in zip(steps, undecided, strict=True)),
        by_look=by_look,
        detectable=most,
        detectable_80=likely,
    )


def plan_operations(
    sigmas: Mapping[str, float],
    config: GateConfig,
    true_ratio: float = 1.0,
    **setting: Unpack[Setting],
) -> dict[str, GatePlan]:
    """Returns the plan of each operation by its own rule; a point takes as long as its slowest.

    Args:
        sigmas: Standard deviation of the log time of one operation, by its name.
        config: Primary operations, rules and looks.
        true_ratio: Ratio of candidate to baseline for which the plan is made.
        setting: See `Setting`.
    """
    return {
        name: plan(sigma, config.rule(name), true_ratio, **setting)
        for name, sigma in sigmas.items()
    }


def more_blocks(
    sigma: float, log_ratio: float, operations: int, rule: GateRule, per_life: int = 1
) -> int | None:
    """Returns how many more blocks make a verdict likely if the ratio is what it seems.

    A verdict comes at a look: it is the first one that is left, those of `--more` included, which
    gives one eight times in ten. None where none does.

    Args:
        sigma: Standard deviation of the log time of one operation.
        log_ratio: Natural log of the estimate of candidate over baseline.
        operations: Operations per arm that were measured.
        rule: Tolerance, margin, levels and looks.
        per_life: Operations of one life of a worker.
    """
    schedule, block = Schedule.of(rule, per_life), PER_ARM * per_life
    for at, share in zip(schedule.looks, schedule.shares, strict=True):
        if at > operations and at >= _needed(sigma, log_ratio, share, rule):
            return math.ceil((at - operations) / block)
    return None


def _needed(sigma: float, log_ratio: float, share: float, rule: GateRule) -> float:
    """Returns the operations per arm that make either verdict likely at the level of one look."""
    beyond_tolerance = log_ratio - math.log1p(rule.tolerance)
    below_margin = math.log1p(rule.margin) - log_ratio
    return min(
        _operations(sigma, beyond_tolerance, rule.alpha * share),
        _operations(sigma, below_margin, rule.pass_alpha * share),
    )


def _operations(sigma: float, distance: float, alpha: float) -> float:
    from scipy.special import ndtri

    if distance <= 0:
        return math.inf
    quantiles = float(ndtri(1 - alpha) + ndtri(LIKELY))
    return (quantiles * standard_error(sigma, 1) / distance) ** 2
