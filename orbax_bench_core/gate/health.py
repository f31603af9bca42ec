"""Health of a series of times: drift, regimes, outliers, cold operations."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Final

import numpy as np

from orbax_bench_core.gate.blocks import Bools, Floats
from orbax_bench_core.gate.drift import drift_p_value
from orbax_bench_core.gate.noise import robust_sigma
from orbax_bench_core.gate.verdict import SeriesHealth, is_drift
from orbax_bench_core.reasons import NO_REASON, Reasons, because

_LONGEST_FOR_PAIRS: Final = 1000
"""Values up to which the slope of every pair is looked at: their number grows with the square."""

_FAR: Final = 3.5
"""Robust standard deviations that make an outlier: B. Iglewicz and D. C. Hoaglin, "How to detect
and handle outliers", 1993."""

_LEAST_SIGMA: Final = 1e-3
"""Values that agree to a thousandth are no outliers of each other, however often they are equal."""

_MANY_OUTLIERS: Final = 0.05
_FEWEST_OUTLIERS: Final = 2
"""A value in ten lies that far off in one of eight series of ten normal values."""

FEWEST: Final = 10
"""Below so many values two groups and one with a hole look alike."""

_SMALLEST_GROUP: Final = 0.25
_CLEAR_GAP: Final = 0.8
_CLEARER_GAP_OF_FEW: Final = 30.0
_LARGE_RATIO: Final = 1.05

_FEWEST_AFTER_START: Final = 4
_START_SHARE: Final = 0.5
_START_RATIO: Final = 1.25
_START_GAP: Final = 4.0


def health(times: Any) -> SeriesHealth:
    """Describes one series of one arm.

    A drift is flagged when it is both improbable (p below 1 %, with allowance for values that
    follow each other, see `drift_p_value`) and as large as 5 %. Of series that only wander, with a
    correlation of 0.8 from one value to the next or less, at most 5 % are flagged as drifting, and
    as many for outliers.
    """
    given = np.asarray(times, dtype=np.float64).ravel()
    values = given[np.isfinite(given) & (given > 0)]
    flags = NO_REASON
    if left_out := int(len(given) - len(values)):
        flags += because("left_out", values=left_out, of=len(given))
    if not len(values):
        return SeriesHealth(n=0, median=math.nan, flags=flags + because("no_values"))
    logs = np.log(values)
    drift_p, drift = drifts = _drift(logs)
    regimes = find_regimes(logs)
    outliers = _outliers(logs, regimes)
    flags += _flags(logs, drifts, regimes, outliers)
    several = len(values) > 1
    lower, upper = np.percentile(values, (25, 75)).tolist()
    middle = float(np.median(values))
    return SeriesHealth(
        n=len(values),
        median=middle,
        spread=(upper - lower) / middle if several else None,
        sigma=robust_sigma(logs),
        drift_p=drift_p,
        drift=drift,
        regimes=regimes is not None,
        regime_ratio=None if regimes is None else regimes.ratio,
        outliers=outliers,
        flags=flags,
    )


def _flags(
    logs: Floats,
    drift: tuple[float | None, float | None],
    regimes: Regimes | None,
    outliers: float,
) -> Reasons:
    """Returns the flags of a series; `drift` is the result of `_drift`."""
    found, (p_value, change) = NO_REASON, drift
    if is_drift(p_value, change):
        found += because("drifts", change=change, p_value=p_value)
    if regimes is not None:
        slow, count, switches = int(regimes.slow.sum()), len(regimes.slow), regimes.switches
        found += because("two_groups", slow=slow, of=count, ratio=regimes.ratio, switches=switches)
    # The share is a whole number of values over their count.
    if outliers > _MANY_OUTLIERS and round(outliers * len(logs)) >= _FEWEST_OUTLIERS:
        found += because("outliers", share=outliers)
    if first := slow_start(logs):
        ratio = math.exp(np.median(logs[:first]) - np.median(logs[first:]))
        found += because("slow_start", values=first, ratio=ratio)
    return found


def _drift(logs: Floats) -> tuple[float | None, float | None]:
    """Returns the p-value of the drift test, and the Theil-Sen change from first to last."""
    p_value = drift_p_value(logs)
    if p_value is None:
        return None, None
    # All pairs of a long series do not fit into memory.
    step = math.ceil(len(logs) / _LONGEST_FOR_PAIRS)
    some = logs[::step]
    first, second = np.triu_indices(len(some), 1)
    slope = float(np.median((some[second] - some[first]) / ((second - first) * step)))
    return p_value, math.expm1(slope * (len(logs) - 1))


def _outliers(logs: Floats, regimes: Regimes | None) -> float:
    """Returns the share of values far off the others, each among its own kind."""
    groups = [logs] if regimes is None else [logs[regimes.slow], logs[~regimes.slow]]
    far = 0
    for group in groups:
        limit = _FAR * max(robust_sigma(group) or 0.0, _LEAST_SIGMA)
        far += int(np.count_nonzero(np.abs(group - np.median(group)) > limit))
    return far / len(logs)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Regimes:
    """Two separate groups of values."""

    slow: Bools  # which values are in the slow group
    ratio: float  # median of the slow group over that of the fast one
    switches: int  # how often the series goes from one to the other


def find_regimes(logs: Floats) -> Regimes | None:
    """Splits a series at the largest gap between its sorted values, where that is a real one.

    The gap counts between the quartiles, so that some stalls are outliers and no regime. It is real
    when it is 0.8 + 30 / n times as wide as the standard deviation within the groups, which less
    than 1 % of series of n normal values have.

    Args:
        logs: Natural logs of the times of one arm, shape (n,), in the order measured.

    Returns:
        Both groups; None for a series that is too short, or has one state only.
    """
    count = len(logs)
    if count < FEWEST:
        return None
    ordered = np.sort(logs)
    smallest = max(2, math.ceil(_SMALLEST_GROUP * count))
    gaps = np.diff(ordered)[smallest - 1 : count - smallest]
    split = int(gaps.argmax()) + smallest
    gap = float(ordered[split] - ordered[split - 1])
    fast, slow = ordered[:split], ordered[split:]
    ratio = math.exp(np.median(slow) - np.median(fast))
    clear = (_CLEAR_GAP + _CLEARER_GAP_OF_FEW / count) * _spread_within(fast, slow)
    if gap <= clear or ratio < _LARGE_RATIO:
        return None
    is_slow = np.asarray(logs >= slow[0])
    return Regimes(slow=is_slow, ratio=ratio, switches=int(np.count_nonzero(np.diff(is_slow))))


def slow_start(logs: Floats) -> int:
    """Returns how many values at the start stand clear above all others; 0 where none do.

    A cache that the first operations had to fill shows itself so. They must make up no more than
    half of the series, be 1.25 times as slow by their medians, and be apart from the rest by four
    of its robust standard deviations.

    Args:
        logs: Natural logs of the times of one arm, shape (n,), in the order measured.
    """
    best, widest = 0, 0.0
    for first in range(1, int(_START_SHARE * len(logs)) + 1):
        start, rest = logs[:first], logs[first:]
        if len(rest) < _FEWEST_AFTER_START:
            break
        gap = float(start.min() - rest.max())
        if gap <= widest:
            continue
        clear = gap > _START_GAP * (robust_sigma(rest) or 0.0)
        large = bool(np.median(start) - np.median(rest) > math.log(_START_RATIO))
        if clear and large:
            best, widest = first, gap
    return best


def _spread_within(fast: Floats, slow: Floats) -> float:
    squares = ((fast - fast.mean()) ** 2).sum() + ((slow - slow.mean()) ** 2).sum()
    return math.sqrt(float(squares) / (len(fast) + len(slow) - 2))
