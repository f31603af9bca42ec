"""Lines through the blocked times of saves of several sizes, for each kind of save.

A blocking save takes a fixed time and writes its bytes at the speed of the storage. A save in the
background blocks for a fixed time too, and until its bytes are copied, at the speed of the copy. So
the share saved goes from what the fixed times leave to 1 less the ratio of both speeds.
"""

import math
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.analysis.async_study import model

FEWEST_SIZES: Final = 3
"""Two sizes lie on a line whatever they are."""

NEAR: Final = 0.3
"""Relative distance of a median from its line up to which the speed of that is to be trusted."""


def fit_of(sizes: Sequence[model.Size]) -> model.Fit | None:
    """Returns the lines through the medians of the blocked times; None with too few sizes.

    The sizes must be at least `FEWEST_SIZES` and differ in bytes.

    Returns:
        Lines of seconds over bytes. `limit` is the share of the blocked time that saving in the
        background saves as sizes grow without end, by the slopes of both.
    """
    if len({size.num_bytes for size in sizes}) < FEWEST_SIZES:
        return None
    num_bytes = [size.num_bytes for size in sizes]
    blocking = line_through(num_bytes, [size.blocking.blocked for size in sizes])
    background = line_through(num_bytes, [size.background.blocked for size in sizes])
    limit = 1 - background.s_per_byte / blocking.s_per_byte if blocking.s_per_byte else None
    return model.Fit(
        blocking=blocking,
        background=background,
        limit=limit,
        holds=not blocking.flat
        and not background.flat
        and max(blocking.worst, background.worst) <= NEAR,
    )


def line_through(num_bytes: Sequence[int], times: Sequence[model.Seconds]) -> model.Line:
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
    return model.Line(
        fixed_s=float(fixed),
        s_per_byte=float(growing) / largest,
        residual=math.sqrt(float(np.mean(away**2))),
        worst=float(np.abs(away).max()),
        flat=growing == 0
        or max(seconds.low for seconds in times) <= min(seconds.high for seconds in times),
    )
