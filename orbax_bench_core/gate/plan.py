"""Plan of a comparison: its expected length and power, by simulation."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from orbax_bench_core.config import GateConfig, GateRule
from orbax_bench_core.gate.blocks import PER_ARM, Blocks, random_labels
from orbax_bench_core.gate.looks import settle
from orbax_bench_core.gate.noise import detectable

_SERIES: Final = 200
_SEED: Final = 20_240_229
_DIGITS: Final = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Expected length and power of a comparison.

    Attributes:
        operations: Mean number of operations per arm until a verdict or the last look.
        by_look: Chance of a verdict by each look, as counted in a small simulation.
        detectable: Smallest relative slow-down that is found nine times in ten by the last look.
    """

    operations: float
    by_look: tuple[float, ...]
    detectable: float

    @property
    def verdict(self) -> float:
        """Chance of a verdict by the last look."""
        return self.by_look[-1]


def expected_operations(
    sigma: float, rule: GateRule | None = None, true_ratio: float = 1.0
) -> float:
    """Returns how many operations per arm a verdict will take on average; see `plan`."""
    return plan(sigma, rule, true_ratio).operations


def plan(sigma: float, rule: GateRule | None = None, true_ratio: float = 1.0) -> Plan:
    """Returns how long a comparison will probably take.

    It is simulated: 200 comparisons with independent log-normal times and a fixed seed go through
    the gate itself. Stalls and slow states that the robust sigma leaves out make it take longer.

    Args:
        sigma: Robust standard deviation of a log time within a run, such as a noise passport gives.
        rule: When a difference counts; by default the defaults.
        true_ratio: Ratio of candidate to baseline to plan for.

    Raises:
        ValueError: If sigma is negative or not finite, or the ratio not positive and finite.
    """
    if not (math.isfinite(sigma) and sigma >= 0):
        raise ValueError(f"sigma is {sigma}; a standard deviation of at least 0 is needed")
    if not (math.isfinite(true_ratio) and true_ratio > 0):
        raise ValueError(f"true_ratio is {true_ratio}; a positive number is needed")
    rule = GateRule() if rule is None else rule
    # A GateConfig is a rule too, but cannot be a key.
    common = GateRule(**{name: getattr(rule, name) for name in GateRule.model_fields})
    by_look = _by_look(float(f"{sigma:.{_DIGITS}g}"), common, true_ratio)
    undecided = [1.0, *(1 - share for share in by_look[:-1])]
    steps = np.diff((0, *rule.looks)).tolist()
    return Plan(
        operations=sum(step * share for step, share in zip(steps, undecided, strict=True)),
        by_look=by_look,
        detectable=detectable(sigma, rule.looks[-1], rule),
    )


def plan_operations(
    sigmas: Mapping[str, float], config: GateConfig, true_ratio: float = 1.0
) -> dict[str, Plan]:
    """Returns the plan of each operation by its own rule; a point takes as long as its slowest.

    Args:
        sigmas: Robust standard deviation of the log time within a run, by operation.
        config: When a difference counts.
        true_ratio: Ratio of candidate to baseline to plan for.
    """
    return {name: plan(sigma, config.rule(name), true_ratio) for name, sigma in sigmas.items()}


@functools.lru_cache(maxsize=256)
def _by_look(sigma: float, rule: GateRule, true_ratio: float) -> tuple[float, ...]:
    rng = np.random.default_rng(_SEED)
    blocks = rule.looks[-1] // PER_ARM
    settled = [0] * len(rule.looks)
    for _ in range(_SERIES):
        labels = random_labels(blocks, rng)
        logs = sigma * rng.standard_normal(labels.shape) + math.log(true_ratio) * labels
        series = {"planned": Blocks(logs=logs, candidate=labels)}
        outcome = settle(series, {"planned": rule})["planned"]
        if outcome.settled and outcome.look is not None:
            settled[outcome.look] += 1
    return tuple((np.cumsum(settled) / _SERIES).tolist())
