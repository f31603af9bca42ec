"""Copying memory that is in use already."""

from __future__ import annotations

import functools

import numpy as np

from orbax_bench_core.execute.limits.clock import repeated, timed
from orbax_bench_core.execute.limits.workload import Workload


def memory_copy(workload: Workload) -> list[float]:
    """Times a copy of all pieces, one per thread, from and to pages that exist.

    Returns:
        Seconds of each repeat.
    """

    def once() -> float:
        return timed(
            [
                functools.partial(np.copyto, buffer, piece)
                for buffer, piece in zip(workload.buffers, workload.pieces, strict=True)
            ]
        )

    return repeated(workload.repeats, once)
