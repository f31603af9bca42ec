"""Variance components of log times: the offset of one worker process, and of one option in it."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from orbax_bench_core.files import ResultModel
from orbax_bench_core.gate import NORMAL_MAD

_LEVEL: Final = 0.95
_FAR: Final = 3.0
"""Robust standard deviations at which residuals are cut off: a stall belongs to no worker."""


class Component(ResultModel):
    """Standard deviation between workers, on the log scale, with its 95 % interval.

    Attributes:
        estimate: The estimate; 0 where workers differ by less than their operations explain.
        low: Lower end of the interval; above 0 it cannot be put down to chance.
        high: Upper end of it.
        p_value: Probability of workers as different as these if all were the same, by the F test.
        workers: Workers that were measured.
        rounds: Measured operations (or ratios) of each.
    """

    estimate: float
    low: float
    high: float
    p_value: float
    workers: int
    rounds: int


def between_workers(values: Any) -> Component | None:
    """Returns how much workers differ beyond what their operations do.

    An analysis of variance of y = wave + worker + round within the wave + rest: the estimate is
    sqrt((MS of workers - MS of the rest) / rounds), its interval that of J. S. Williams ("A
    confidence interval for variance components", Biometrika 49 (1962) 278), which has at least the
    coverage it states. What workers of a wave share, such as the drift of the machine, is no part
    of it. Residuals are cut off at three robust standard deviations first.

    With log times the result is the process noise tau; with log ratios of two options in one
    worker, the interaction of worker and option.

    Args:
        values: Shape (waves, workers of a wave, rounds of a worker); finite. Workers of a wave
            lived at about the same time, under the same option.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 3 or min(table.shape) < 1 or table.shape[1] < 2 or table.shape[2] < 2:
        return None
    waves, workers, rounds = table.shape
    table = _cut_off(table)
    wave = table.mean(axis=(1, 2), keepdims=True)
    worker, turn = table.mean(axis=2, keepdims=True), table.mean(axis=1, keepdims=True)
    between, within = waves * (workers - 1), waves * (workers - 1) * (rounds - 1)
    ms_between = rounds * float(((worker - wave) ** 2).sum()) / between
    ms_within = float(((table - worker - turn + wave) ** 2).sum()) / within
    low, high = _williams(ms_between, ms_within, (between, within), rounds)
    return Component(
        estimate=math.sqrt(max(ms_between - ms_within, 0.0) / rounds),
        low=low,
        high=high,
        p_value=_f_test(ms_between, ms_within, between, within),
        workers=waves * workers,
        rounds=rounds,
    )


def expected_bound(sigma: float, waves: int, workers: int, rounds: int) -> float:
    """Returns the upper 95 % bound to expect for workers that do not differ at all."""
    freedom = waves * (workers - 1), waves * (workers - 1) * (rounds - 1)
    return _williams(sigma**2, sigma**2, freedom, rounds)[1]


def _cut_off(table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    middle = np.median(table, axis=(1, 2), keepdims=True)
    rest = table - middle
    limit = _FAR * float(np.median(np.abs(rest))) / NORMAL_MAD
    return middle + np.clip(rest, -limit, limit) if limit else table


def _williams(
    between: float, within: float, freedom: tuple[int, int], rounds: int
) -> tuple[float, float]:
    """Returns both ends for the standard deviation between workers."""
    from scipy.special import chdtri, fdtri

    tail = (1 - _LEVEL) / 2
    first, second = freedom

    def end(lower_tail: float, found: float = between) -> float:
        f_value = float(fdtri(first, second, lower_tail))
        chi_square = float(chdtri(first, 1 - lower_tail))
        square = first * (found - f_value * within) / (rounds * chi_square)
        return math.sqrt(max(square, 0.0))

    # Workers that differ less than chance would have it are no proof that they never differ.
    return end(1 - tail), end(tail, max(between, within))


def _f_test(between: float, within: float, first: int, second: int) -> float:
    from scipy.special import fdtrc

    if not within:
        return 0.0 if between else 1.0
    return float(fdtrc(first, second, between / within))
