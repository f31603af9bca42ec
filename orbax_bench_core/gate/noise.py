"""Noise of the blocks, and the slow-down that a number of operations can detect."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import PER_ARM, Blocks, Floats
from orbax_bench_core.gate.looks import shares

POWER: Final = 0.9
"""Share of the slow-downs of the detectable size that are found."""

_LIKELY: Final = 0.8
"""Chance of a verdict that makes the blocks for it worth their time."""

_RANK_EFFICIENCY: Final = 0.955
"""Asymptotic efficiency of ranks against means under normal noise, 3 / pi."""

_NORMAL_MAD: Final = 0.6744897501960817
"""Median absolute deviation of a standard normal."""


def robust_sigma(logs: Floats) -> float | None:
    """Returns the standard deviation that the middle half of the logs implies; None below two."""
    if len(logs) < 2:
        return None
    return float(np.median(np.abs(logs - np.median(logs)))) / _NORMAL_MAD


def within_block_sigma(blocks: Blocks) -> float:
    """Returns the robust standard deviation of a log cost within a block.

    It comes from the two operations that one arm has in one block, so that neither a difference
    between the arms nor a drift from block to block counts as noise.
    """
    arms = [blocks.logs[blocks.candidate], blocks.logs[~blocks.candidate]]
    pairs = np.concatenate([arm.reshape(-1, PER_ARM) for arm in arms])
    differences = np.abs(pairs[:, 1] - pairs[:, 0]) / math.sqrt(2)
    return float(np.median(differences)) / _NORMAL_MAD


def detectable(sigma: float, operations: int, rule: GateRule) -> float:
    """Returns the smallest relative slow-down that is found about nine times in ten.

    `exp((z(1 - alpha) + z(0.9)) * sqrt(2) * sigma / sqrt(0.955 * N)) - 1` beyond the tolerance; at
    alpha 1 % the factor is 3.61. The level is that of all looks together. A formula for many
    operations: with 20 per arm it is found 86 times in 100 (see `perf.gate`).

    Args:
        sigma: Robust standard deviation of a log time within a block.
        operations: Operations per arm, N.
        rule: Has alpha and the tolerance.
    """
    from scipy.special import ndtri

    quantiles = float(ndtri(1 - rule.alpha) + ndtri(POWER))
    return (1 + rule.tolerance) * math.exp(quantiles * standard_error(sigma, operations)) - 1


def standard_error(sigma: float, operations: int) -> float:
    """Returns the standard error of the log ratio that ranks give from N operations per arm."""
    return sigma * math.sqrt(2 / (_RANK_EFFICIENCY * operations))


def more_blocks(sigma: float, log_ratio: float, operations: int, rule: GateRule) -> int:
    """Returns about how many more blocks make a verdict likely if the ratio is what it seems.

    A verdict comes at a look. Where no look that is left is likely to give one, it is what a look
    of its own at the last look's level would need: the looks of the rule have to be extended first.

    Args:
        sigma: Robust standard deviation of a log time within a block.
        log_ratio: Log of the estimated ratio.
        operations: Operations per arm so far.
        rule: When a difference counts.
    """
    coming = [index for index, look in enumerate(rule.looks) if look > operations]
    for index in coming:
        if rule.looks[index] >= _needed(sigma, log_ratio, index, rule):
            return math.ceil((rule.looks[index] - operations) / PER_ARM)
    needed = _needed(sigma, log_ratio, len(rule.looks) - 1, rule)
    return max(1, math.ceil((needed - operations) / PER_ARM))


def _needed(sigma: float, log_ratio: float, look: int, rule: GateRule) -> float:
    """Returns the operations per arm that make either verdict likely at the level of one look."""
    share = shares(rule)[look]
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
    quantiles = float(ndtri(1 - alpha) + ndtri(_LIKELY))
    return (quantiles * sigma / distance) ** 2 * 2 / _RANK_EFFICIENCY
