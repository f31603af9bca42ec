"""Fit of an async study: lines through blocked times, intervals of medians and ratios.

A blocking save takes a fixed time and writes its bytes at the speed of the storage. A save in the
background blocks for a fixed time too, and until its bytes are copied, at the speed of the copy. So
the share saved goes from what the fixed times leave to 1 less the ratio of both speeds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.analysis.async_study.model import Fit, Line, Ratio, Seconds, Size
from orbax_bench_core.analysis.intervals import median_interval, ratio_interval

FEWEST_SIZES: Final = 3
"""Two sizes lie on a line whatever they are."""

NEAR: Final = 0.3
"""Relative distance of a median from its line up to which the speed of that is to be trusted."""


def fit_of(sizes: Sequence[Size]) -> Fit | None:
    """Returns the lines through the medians of the blocked times; None with too few sizes.

    The sizes must be at least `FEWEST_SIZES` and differ in bytes.
    """
    if len({size.num_bytes for size in sizes}) < FEWEST_SIZES:
        return None
    num_bytes = [size.num_bytes for size in sizes]
    blocking = line_through(num_bytes, [size.blocking.blocked for size in sizes])
    background = line_through(num_bytes, [size.background.blocked for size in sizes])
    limit = 1 - background.s_per_byte / blocking.s_per_byte if blocking.s_per_byte else None
    return Fit(
        blocking=blocking,
        background=background,
        limit=limit,
        holds=not blocking.flat
        and not background.flat
        and max(blocking.worst, background.worst) <= NEAR,
    )


def line_through(num_bytes: Sequence[int], times: Sequence[Seconds]) -> Line:
    """Returns the line with the least sum of squared relative distances to medians.

    Neither part is below 0. Distances are relative, because sizes span decades: absolute distances
    would fit the largest alone. Sizes must not all be equal, and times must be positive, one per
    size.
    """
    import numpy as np
    from scipy.optimize import nnls

    medians = np.asarray([seconds.median for seconds in times], dtype=np.float64)
    # In units of the largest size, so that both unknowns are of one magnitude.
    largest = max(num_bytes)
    sizes = np.asarray(num_bytes, dtype=np.float64) / largest
    design = np.stack([1 / medians, sizes / medians], axis=1)
    (fixed, growing), _ = nnls(design, np.ones(len(medians)))
    away = (fixed + growing * sizes) / medians - 1
    return Line(
        fixed_s=float(fixed),
        s_per_byte=float(growing) / largest,
        residual=math.sqrt(float(np.mean(away**2))),
        worst=float(np.abs(away).max()),
        flat=growing == 0
        or max(seconds.low for seconds in times) <= min(seconds.high for seconds in times),
    )


def seconds_of(times: Sequence[float]) -> Seconds:
    """Returns the median of some repeats with its interval."""
    found = median_interval(times)
    return Seconds(n=len(times), median=statistics.median(times), **found._asdict())


def ratio_of(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Returns the ratio of one kind of repeats to another, with its interval."""
    value, low, high = ratio_interval(above, below)
    return Ratio(value=value, low=low, high=high)
