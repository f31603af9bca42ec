"""Layout of a save: shards, chunks and bytes of every array and host, before it is written.

The rules are those of orbax-checkpoint 0.12.8 and TensorStore 0.1.86, and are held against real
saves by the tests and by `python -m tests.support.real_saves`.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orbax_bench_core.config import ShardingEntry
from orbax_bench_core.plan.meshes import PlanMesh
from orbax_bench_core.plan.options import StorageOptions
from orbax_bench_core.plan.trees import PlannedArray, PlannedTree, onto

if TYPE_CHECKING:
    import numpy as np


@dataclasses.dataclass(frozen=True, slots=True)
class ArrayLayout:
    """Layout of one array on storage.

    Attributes:
        name: Its name in the store.
        shape: Global shape, in elements.
        dtype: Its dtype.
        spec: Its partition on the mesh.
        shard_shape: What one device holds.
        replicas: Devices that hold the same part.
        write_shape: What one process writes at a time.
        chunk_shape: The smallest part that can be read alone.
        num_bytes: Bytes of the whole array.
        shard_bytes: Bytes that one device holds.
        write_bytes: Bytes of one write.
        parallel: Whether all replicas write a part.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    spec: tuple[ShardingEntry, ...]
    shard_shape: tuple[int, ...]
    replicas: int
    write_shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    num_bytes: int
    shard_bytes: int
    write_bytes: int
    parallel: bool


@dataclasses.dataclass(frozen=True, slots=True)
class SaveLayout:
    """A save on a mesh.

    Attributes:
        arrays: How each array is saved.
        host_bytes: Array bytes that each host writes, of shape (hosts,).
    """

    arrays: tuple[ArrayLayout, ...]
    host_bytes: np.ndarray


def predict(tree: PlannedTree, mesh: PlanMesh, options: StorageOptions) -> SaveLayout:
    """Predicts shards, chunks and bytes of a save."""
    arrays = tuple(_array(array, mesh, options) for array in tree.arrays)
    return SaveLayout(arrays, _host_bytes(arrays, mesh))


def _array(array: PlannedArray, mesh: PlanMesh, options: StorageOptions) -> ArrayLayout:
    spec = onto(array, mesh)
    shard = mesh.shard(array.shape, spec)
    replicas = mesh.num_devices // mesh.size(tuple(mesh.used(spec)))
    axis = _replica_axis(shard, replicas) if options.use_replica_parallel else None
    written = tuple(
        size // replicas if dimension == axis else size for dimension, size in enumerate(shard)
    )
    return ArrayLayout(
        name=array.name,
        shape=array.shape,
        dtype=array.dtype,
        spec=spec,
        shard_shape=shard,
        replicas=replicas,
        write_shape=written,
        chunk_shape=chunk_shape(array.shape, written, array.itemsize, options),
        num_bytes=array.num_bytes,
        shard_bytes=math.prod(shard) * array.itemsize,
        write_bytes=math.prod(written) * array.itemsize,
        parallel=axis is not None,
    )


def _replica_axis(shard: Sequence[int], replicas: int) -> int | None:
    """Returns the first dimension that replicas can share evenly."""
    if replicas <= 1 or not math.prod(shard):
        return None
    return next((d for d, size in enumerate(shard) if size % replicas == 0), None)


def _host_bytes(arrays: Sequence[ArrayLayout], mesh: PlanMesh) -> np.ndarray:
    """Returns the bytes that each host writes."""
    import numpy as np

    # The axes that cut an array decide who writes; where replicas write in parallel, all do.
    weights = collections.Counter[frozenset[str] | None]()
    for array in arrays:
        weights[None if array.parallel else mesh.used(array.spec)] += array.write_bytes
    found = np.zeros(mesh.num_hosts, dtype=np.int64)
    for axes, weight in weights.items():
        found += weight * (mesh.devices_per_host if axes is None else mesh.writers(axes))
    return found


def chunk_shape(
    shape: tuple[int, ...], write_shape: tuple[int, ...], itemsize: int, options: StorageOptions
) -> tuple[int, ...]:
    """Returns the shape of the chunks that Orbax cuts an array into.

    The rule is that of `subchunking.choose_chunk_shape` and
    `tensorstore_utils.calculate_chunk_byte_size` in orbax-checkpoint 0.12.8, without `shard_axes`:
    the largest dimension that is cut already is cut further by its divisors, until a chunk is
    small enough; only then dimensions that are whole. One process writes `write_shape` at a time.

    Args:
        shape: Elements of the whole array in each dimension.
        write_shape: Elements of the part that one process writes, of as many dimensions.
        itemsize: Bytes of an element.
        options: Limit of the bytes of a chunk, and whether OCDBT sets one too.
    """
    write_shape = tuple(max(1, size) for size in write_shape)
    limit = options.chunk_byte_size
    if options.use_ocdbt and options.target:
        if limit is not None:
            limit = min(limit, options.target)
        elif math.prod(write_shape) * itemsize > options.target:
            limit = options.target
    if limit is None:
        return write_shape
    return _cut(shape, write_shape, max(1, limit // itemsize))


@functools.lru_cache(maxsize=4096)
def _cut(
    shape: tuple[int, ...], write_shape: tuple[int, ...], most_elements: int
) -> tuple[int, ...]:
    factors = [_divisors(size) for size in write_shape]
    is_cut = [whole != part for whole, part in zip(shape, write_shape, strict=True)]
    while math.prod(found[-1] for found in factors) > most_elements:
        largest = max(
            (found[-1] for found, cut in zip(factors, is_cut, strict=True) if cut), default=1
        )
        if largest == 1:
            is_cut = [True] * len(factors)
            continue
        chosen = next(
            index
            for index, (found, cut) in enumerate(zip(factors, is_cut, strict=True))
            if cut and found[-1] == largest
        )
        factors[chosen].pop()
    return tuple(found[-1] for found in factors)


def _divisors(size: int) -> list[int]:
    low = [part for part in range(1, math.isqrt(size) + 1) if size % part == 0]
    return sorted({*low, *(size // part for part in low)})
