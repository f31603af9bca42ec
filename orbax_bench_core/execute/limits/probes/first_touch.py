"""Touching fresh memory for the first time, when the kernel and the hypervisor must find it."""

from __future__ import annotations

import functools
import mmap

import numpy as np

from orbax_bench_core.execute.limits.clock import repeated, timed
from orbax_bench_core.execute.limits.workload import Array, Workload


def first_touch(workload: Workload) -> list[float]:
    """Times one write to each page of new anonymous mappings, one mapping per thread.

    The mappings are private, as those of an allocator are.

    Returns:
        Seconds of each repeat.
    """

    def once() -> float:
        return timed(
            [functools.partial(_touch, fresh_pages(piece.nbytes)) for piece in workload.pieces]
        )

    return repeated(workload.repeats, once)


def fresh_pages(num_bytes: int) -> Array:
    """Returns the first byte of each page of a new mapping, as a view; none has been touched."""
    mapping = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(mapping, np.uint8)[:: mmap.PAGESIZE]


def _touch(first_bytes: Array) -> None:
    first_bytes[...] = 1
