"""Noise of the blocks, and quantiles and spread of values."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from orbax_bench_core.config import PER_ARM
from orbax_bench_core.gate.blocks import Blocks, Floats

NORMAL_MAD: Final = 0.6744897501960817
"""Median absolute deviation of a standard normal."""

_FAR: Final = 3.5
"""Robust standard deviations beyond which a value counts as no farther."""


def robust_sigma(logs: Floats) -> float | None:
    """Returns the standard deviation that the middle half of the logs implies; None below two.

    It is the median absolute deviation over 0.6745, that of a standard normal. Up to half of the
    values may be far out without changing it much.

    Args:
        logs: Natural logs of times, shape (n,), so that 0.05 is about 5 %.
    """
    if len(logs) < 2:
        return None
    return float(np.median(np.abs(logs - np.median(logs)))) / NORMAL_MAD


def within_reach(values: Floats, like: Floats | None = None) -> Floats:
    """Returns values about 0 of which none is farther off than 3.5 robust standard deviations.

    Args:
        values: Deviations from a centre, of any shape, which the result has too.
        like: Deviations whose spread is taken instead of that of `values`, of any shape.
    """
    reach = _FAR * (robust_sigma((values if like is None else like).ravel()) or 0.0) or math.inf
    return np.clip(values, -reach, reach)


def within_block_sigma(blocks: Blocks) -> float:
    """Returns the robust standard deviation of a log cost within a block.

    It comes from the two slots that one arm has in one block, so that neither a difference between
    the arms nor a drift from block to block counts as noise. With lives it is that of their means,
    times the root of their length: it has in it what differs from process to process.
    """
    means = blocks.logs.mean(axis=2)
    arms = [means[blocks.candidate], means[~blocks.candidate]]
    pairs = np.concatenate([arm.reshape(-1, PER_ARM) for arm in arms])
    differences = np.abs(pairs[:, 1] - pairs[:, 0]) * math.sqrt(blocks.per_life / 2)
    return float(np.median(differences)) / NORMAL_MAD


def cut(ordered: Sequence[float], part: int, parts: int) -> float:
    """Returns one cut of `statistics.quantiles(method="inclusive")`, which computes all of them."""
    if len(ordered) == 1:
        return ordered[0]  # which may be infinite
    place, rest = divmod(part * (len(ordered) - 1), parts)
    after = ordered[min(place + 1, len(ordered) - 1)]
    return (ordered[place] * (parts - rest) + after * rest) / parts


def spread(values: Sequence[float]) -> float | None:
    """Returns the interquartile range over the median, a ratio; None for fewer than two values."""
    if len(values) < 2:
        return None
    ordered = sorted(values)
    return (cut(ordered, 3, 4) - cut(ordered, 1, 4)) / cut(ordered, 1, 2)
