"""Read amplification: chunks that each host touches when arrays are loaded onto a mesh.

A host reads each chunk at least once if one of its devices needs a part of it (the union), and at
most once for each of its distinct shards that does (the sum, which is Orbax's own
`estimate_read_memory_footprint`). In between it is luck: shards that ask for a chunk at once share
one read.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orbax_bench_core.config import ShardingEntry
from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.plan.meshes import PlanMesh, named

if TYPE_CHECKING:
    import numpy as np


@dataclasses.dataclass(frozen=True, slots=True)
class ReadArray:
    """An array to load.

    Attributes:
        name: Its name.
        shape: Global shape, in elements.
        itemsize: Bytes of an element.
        chunk_shape: The smallest part that can be read alone.
        spec: Its partition on the mesh that it is loaded onto.
    """

    name: str
    shape: tuple[int, ...]
    itemsize: int
    chunk_shape: tuple[int, ...]
    spec: tuple[ShardingEntry, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ReadCost:
    """Reads of each host of a mesh that loads a tree; all in bytes before compression.

    Attributes:
        need: Bytes of the distinct shards of each host, of shape (hosts,).
        least: Bytes of the chunks that it touches, each once, of shape (hosts,).
        most: The same, once for each of its shards that touches one, of shape (hosts,).
        held: Bytes that its devices hold afterwards, replicas included; all hosts are alike.
        largest: Name and bytes of the largest read of one shard, with whole chunks.
    """

    need: np.ndarray
    least: np.ndarray
    most: np.ndarray
    held: int
    largest: tuple[str, int]

    @property
    def least_ratio(self) -> float:
        """Bytes read over bytes needed on the host that is worst off, at least."""
        return _worst(self.least, self.need)

    @property
    def most_ratio(self) -> float:
        """The same at the most."""
        return _worst(self.most, self.need)


def read_cost(arrays: Sequence[ReadArray], mesh: PlanMesh) -> ReadCost:
    """Returns what each host reads to load arrays onto a mesh.

    Raises:
        UserError: The devices of a host are no box in the mesh.
    """
    import numpy as np

    if not mesh.is_aligned:
        message = (
            f"the {mesh.devices_per_host} devices of a host are no box in the mesh {mesh.label}, "
            "where its reads are not counted: give a number that makes whole rows of the last axes"
        )
        raise UserError(Problem(message, key="--devices-per-host"))
    need, least, most = (np.zeros(mesh.num_hosts, dtype=np.int64) for _ in range(3))
    held, largest = 0, ("", 0)
    for array in arrays:
        if not math.prod(array.shape):
            continue
        chunk_bytes = math.prod(array.chunk_shape) * array.itemsize
        shard = _shard(array, mesh)
        shard_bytes = math.prod(shard) * array.itemsize
        held += shard_bytes * mesh.devices_per_host
        count = _count(array, shard, mesh)
        need += count.shards * shard_bytes
        least += count.union * chunk_bytes
        most += count.total * chunk_bytes
        if count.one_shard * chunk_bytes > largest[1]:
            largest = array.name, count.one_shard * chunk_bytes
    return ReadCost(need, least, most, held, largest)


def _worst(read: np.ndarray, need: np.ndarray) -> float:
    import numpy as np

    if not need.any():
        return 1.0
    return float(np.max(read[need > 0] / need[need > 0]))


@dataclasses.dataclass(frozen=True, slots=True)
class _Count:
    """Distinct shards of each host and the chunks that they touch; `one_shard` is the most of one.

    Numbers stand for all hosts alike.
    """

    shards: np.ndarray | int
    union: np.ndarray | int
    total: np.ndarray | int
    one_shard: int


def _entries(array: ReadArray) -> list[tuple[str, ...]]:
    found = [named(entry) for entry in array.spec]
    return [*found, *[()] * (len(array.shape) - len(found))]


def _shard(array: ReadArray, mesh: PlanMesh) -> tuple[int, ...]:
    pairs = zip(array.shape, _entries(array), strict=True)
    return tuple(size // mesh.size(axes) for size, axes in pairs)


def _count(array: ReadArray, shard: Sequence[int], mesh: PlanMesh) -> _Count:
    """Counts dimension by dimension: the shards of a host are a product over dimensions."""
    shards: np.ndarray | int = 1
    union: np.ndarray | int = 1
    total: np.ndarray | int = 1
    one = 1
    for part, chunk, axes in zip(shard, array.chunk_shape, _entries(array), strict=True):
        held, number = _held(mesh, axes)
        along = _along(mesh, axes, part, chunk)
        shards = shards * number
        if isinstance(along.union, int) or isinstance(along.total, int):
            union, total = union * along.union, total * along.total
        else:
            union, total = union * along.union[held], total * along.total[held]
        one *= along.one_shard
    return _Count(shards, union, total, one)


@functools.lru_cache(maxsize=64)
def _held(mesh: PlanMesh, axes: tuple[str, ...]) -> tuple[np.ndarray, int]:
    """Returns which set of parts of a dimension each host holds, and the parts of such a set."""
    parts, held = _sets(mesh, axes)
    return held, parts.shape[1]


@functools.lru_cache(maxsize=64)
def _sets(mesh: PlanMesh, axes: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distinct sets of parts that hosts hold, sorted, and the set of each host."""
    import numpy as np

    local = np.sort(mesh.coordinate(axes).reshape(mesh.num_hosts, mesh.devices_per_host), axis=1)
    # In a box every part is held equally often.
    distinct = len(np.unique(local[0]))
    local = local[:, :: mesh.devices_per_host // distinct]
    sets, held = np.unique(local, axis=0, return_inverse=True)
    return sets, held.reshape(-1)


@functools.lru_cache(maxsize=4096)
def _along(mesh: PlanMesh, axes: tuple[str, ...], part: int, chunk: int) -> _Count:
    """Counts chunks along one dimension for each set of parts that hosts hold."""
    sets, _ = _sets(mesh, axes)
    if part % chunk == 0:  # chunks end where shards end
        number = part // chunk * sets.shape[1]
        return _Count(sets.shape[1], number, number, part // chunk)
    import numpy as np

    begin, end = sets * part // chunk, -(-(sets + 1) * part // chunk)
    before = np.concatenate([begin[:, :1], end[:, :-1]], axis=1)
    union = np.maximum(0, end - np.maximum(begin, before)).sum(axis=1)
    total = (end - begin).sum(axis=1)
    return _Count(sets.shape[1], union, total, int((end - begin).max()))
