"""Read amplification: chunks that each host touches when arrays are loaded onto a mesh.

A host reads each chunk at least once if one of its devices needs a part of it (the union), and at
most once for each of its distinct shards that does (the sum, which is Orbax's own
`estimate_read_memory_footprint`). In between it is luck: shards that ask for a chunk at once share
one read.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.config import ShardingEntry
from orbax_bench_core.plan.meshes import PlanMesh, named

if TYPE_CHECKING:
    import numpy as np

_MOST_ODD: Final = 4096
"""Devices of a mesh whose hosts are no boxes, up to which chunks are counted one by one."""


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
    """Returns what each host reads to load arrays onto a mesh."""
    import numpy as np

    need, least, most = (np.zeros(mesh.num_hosts, dtype=np.int64) for _ in range(3))
    held, largest = 0, ("", 0)
    for array in arrays:
        if not math.prod(array.shape):
            continue
        chunk_bytes = math.prod(array.chunk_shape) * array.itemsize
        shard = _shard(array, mesh)
        shard_bytes = math.prod(shard) * array.itemsize
        held += shard_bytes * mesh.devices_per_host
        count = _aligned(array, shard, mesh) if mesh.is_aligned else _odd(array, shard, mesh)
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


def _aligned(array: ReadArray, shard: Sequence[int], mesh: PlanMesh) -> _Count:
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


def _odd(array: ReadArray, shard: Sequence[int], mesh: PlanMesh) -> _Count:
    """Counts device by device, where the devices of a host are no box in the mesh.

    Above 4,096 devices the chunks that several shards of a host touch are not told apart unless
    chunks end where shards do: `union` is then that of its largest shard, or what it needs, which
    is too little rather than too much.
    """
    import numpy as np

    entries = _entries(array)
    first, shards = _first(mesh, tuple(entries))
    dimensions = list(zip(entries, shard, array.chunk_shape, strict=True))
    if all(part % chunk == 0 for _, part, chunk in dimensions):
        one = math.prod(part // chunk for _, part, chunk in dimensions)
        return _Count(shards, shards * one, shards * one, one)
    touched = np.ones(first.shape, dtype=np.int64)  # devices of a host by hosts: fast to add up
    for axes, part, chunk in dimensions:
        if part % chunk == 0:
            touched *= part // chunk
        else:
            touched *= _touched(mesh.size(axes), part, chunk)[_by_host(mesh, axes)]
    if mesh.num_devices <= _MOST_ODD:
        union = _union(dimensions, mesh)
    else:
        needed = shards * math.prod(shard) // math.prod(array.chunk_shape)
        union = np.maximum(touched.max(axis=0), needed)
    return _Count(shards, union, (touched * first).sum(axis=0), int(touched.max()))


def _touched(parts: int, part: int, chunk: int) -> np.ndarray:
    """Returns how many chunks each part of a dimension touches, of shape (parts,)."""
    import numpy as np

    bounds = np.arange(parts + 1, dtype=np.int64) * part
    return -(-bounds[1:] // chunk) - bounds[:-1] // chunk


@functools.lru_cache(maxsize=64)
def _by_host(mesh: PlanMesh, axes: tuple[str, ...]) -> np.ndarray:
    """Returns the part of a dimension that each device holds, of shape (devices of one, hosts)."""
    import numpy as np

    place = mesh.coordinate(axes).reshape(mesh.num_hosts, mesh.devices_per_host)
    return np.ascontiguousarray(place.T)


@functools.lru_cache(maxsize=64)
def _first(mesh: PlanMesh, entries: tuple[tuple[str, ...], ...]) -> tuple[np.ndarray, np.ndarray]:
    """Returns whether each device of a host is the first there to hold its shard.

    Returns:
        Booleans of shape (devices of one, hosts), and their number of each host.
    """
    import numpy as np

    place = _by_host(mesh, tuple(axis for axes in entries for axis in axes))
    order = np.argsort(place, axis=0, kind="stable")
    ordered = np.take_along_axis(place, order, axis=0)
    is_first = np.ones(place.shape, dtype=bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    found = np.empty(place.shape, dtype=bool)
    np.put_along_axis(found, order, is_first, axis=0)
    return found, found.sum(axis=0)


def _union(dimensions: Sequence[tuple[tuple[str, ...], int, int]], mesh: PlanMesh) -> np.ndarray:
    """Returns the distinct chunks that the shards of each host touch, one by one."""
    import numpy as np

    held = [mesh.coordinate(axes).reshape(mesh.num_hosts, -1) for axes, _, _ in dimensions]
    found = np.zeros(mesh.num_hosts, dtype=np.int64)
    for host in range(mesh.num_hosts):
        touched: set[tuple[int, ...]] = set()
        for place in set(zip(*(part[host].tolist() for part in held), strict=True)):
            ranges = (
                range(index * part // chunk, -(-(index + 1) * part // chunk))
                for index, (_, part, chunk) in zip(place, dimensions, strict=True)
            )
            touched.update(itertools.product(*ranges))
        found[host] = len(touched)
    return found
