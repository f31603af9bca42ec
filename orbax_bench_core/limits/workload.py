"""Synthetic data that every probe moves."""

from __future__ import annotations

import dataclasses
import mmap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from orbax_bench_core.config import ArraySpec
from orbax_bench_core.errors import UserError

if TYPE_CHECKING:
    from etils import epath

Array = np.ndarray[Any, np.dtype[Any]]

_SEED = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """One array in equal pieces, and where to put it.

    Attributes:
        directory: A folder of the probe's own, which exists if it is local.
        pieces: One-dimensional arrays of equal size, one per thread.
        buffers: Room for each piece, with every page in memory already.
        repeats: How many times to keep; one more is run first and discarded.
    """

    directory: epath.Path
    pieces: Sequence[Array]
    buffers: Sequence[Array]
    repeats: int

    @property
    def num_bytes(self) -> int:
        """Bytes of all pieces."""
        return sum(piece.nbytes for piece in self.pieces)


def make_workload(
    directory: epath.Path, *, num_bytes: int, parallelism: int, dtype: str, repeats: int
) -> Workload:
    """Makes synthetic data, which compresses as trained weights do."""
    import jax

    from orbax_bench_core.state import generate

    pages = num_bytes // parallelism // mmap.PAGESIZE
    if pages == 0:
        raise UserError(
            f"{num_bytes} bytes in {parallelism} pieces are less than a page each; "
            f"use at least {parallelism * mmap.PAGESIZE} bytes or fewer pieces"
        )
    length = pages * mmap.PAGESIZE // jax.numpy.dtype(dtype).itemsize
    spec = ArraySpec(dtype=dtype, shape=(parallelism, length))
    tree = generate({"array": spec}, seed=_SEED, mesh=None)
    pieces = list(np.asarray(tree["array"]))
    return Workload(
        directory=directory,
        pieces=pieces,
        # zeros() alone would leave the pages to be made on the first write, inside some clock.
        buffers=[piece.copy() for piece in pieces],
        repeats=repeats,
    )
