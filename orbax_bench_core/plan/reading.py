"""Reads, memory and time of hosts, and what will fail.

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
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.config import ShardingEntry
from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.pages import num_bytes
from orbax_bench_core.plan.layout import SaveLayout
from orbax_bench_core.plan.meshes import PlanMesh, named
from orbax_bench_core.plan.options import StorageOptions

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

    def failures(self, limit: int | None) -> Iterator[str]:
        """Yields what will fail under a limit on bytes in flight; None sets none."""
        name, size = self.largest
        if limit is not None and size >= limit:
            yield (
                f"the load will fail: one shard of {name} reads {num_bytes(size)} of whole chunks, "
                f"and restore_concurrent_gb allows {num_bytes(limit)}; raise it above that, or "
                "save smaller chunks"
            )


def read_cost(arrays: Sequence[ReadArray], mesh: PlanMesh) -> ReadCost:
    """Returns the bytes each host reads to load arrays onto a mesh.

    A host reads whole chunks: at least the union of those that its shards touch, each once, and at
    most one copy for each shard.

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
        shard = mesh.shard(array.shape, array.spec)
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


def _count(array: ReadArray, shard: Sequence[int], mesh: PlanMesh) -> _Count:
    """Counts dimension by dimension: the shards of a host are a product over dimensions."""
    shards: np.ndarray | int = 1
    union: np.ndarray | int = 1
    total: np.ndarray | int = 1
    one = 1
    for part, chunk, entry in itertools.zip_longest(shard, array.chunk_shape, array.spec):
        axes = named(entry)
        sets, held = _sets(mesh, axes)
        along = _along(mesh, axes, part, chunk)
        shards = shards * sets.shape[1]
        # Where chunks end with the shards, one number holds for all hosts; else each set of parts
        # has its own, which `held` spreads over the hosts.
        if isinstance(along.union, int) or isinstance(along.total, int):
            union, total = union * along.union, total * along.total
        else:
            union, total = union * along.union[held], total * along.total[held]
        one *= along.one_shard
    return _Count(shards, union, total, one)


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


_GIB: Final = 2**30
SAVE_SLACK: Final = 10 * 2**20
"""Bytes that a save takes beside those that it writes; measured on 64 to 256 MiB."""
LOAD_SLACK: Final = 95 * 2**20
"""Bytes that a load with a limit takes beside its arrays and the limit; measured on 256 MiB."""


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryBounds:
    """Most host memory that a process takes beside what it had, in bytes.

    Attributes:
        save: While saving from memory of the host: CPU devices.
        save_accelerator: While saving from accelerators, whose arrays are copied to the host first.
        load: While loading, the loaded arrays included.
    """

    save: int
    save_accelerator: int
    load: int


def memory_bounds(layout: SaveLayout, reading: ReadCost, options: StorageOptions) -> MemoryBounds:
    """Returns the most that the process which is worst off takes.

    A save holds compressed chunks until they are written, which are at most as large as the
    arrays. A load holds the arrays of all local devices and the chunks that it reads for them; the
    limit on loading bounds the latter.
    """
    written = int(layout.host_bytes.max(initial=0))
    load = load_bound(reading, options.load_limit)
    return MemoryBounds(written + SAVE_SLACK, 2 * written + SAVE_SLACK, load)


def load_bound(reading: ReadCost, limit: int | None) -> int:
    """Returns the most bytes that a load takes on the host that is worst off.

    Args:
        reading: What the hosts read.
        limit: Most bytes in flight while loading; None sets no limit.
    """
    in_flight = max(reading.held, int(reading.most.max(initial=0)))
    bound = reading.held + in_flight + SAVE_SLACK
    return bound if limit is None else min(bound, reading.held + limit + LOAD_SLACK)


@dataclasses.dataclass(frozen=True, slots=True)
class Speeds:
    """Best speeds of the storage of one host.

    Attributes:
        write: In GiB/s, until data are on stable storage; None if nothing tells.
        read: In GiB/s, cold; None if nothing tells.
        write_source: Where that of writing is from.
        read_source: Where that of reading is from.
    """

    write: float | None = None
    read: float | None = None
    write_source: str = "given"
    read_source: str = "given"


@dataclasses.dataclass(frozen=True, slots=True)
class TimeBounds:
    """Fewest seconds of a save and a load; None if nothing tells."""

    save_s: float | None
    load_s: float | None


def time_bounds(
    layout: SaveLayout, reading: ReadCost, options: StorageOptions, speeds: Speeds
) -> TimeBounds:
    """Returns the fewest seconds, by the bytes of the slowest host at the best speed.

    That is bytes on storage of the host with the most, after compression, over its GiB/s. Latency,
    metadata and copies off the devices come on top.
    """
    ratio = options.compression_ratio if options.use_compression else 1.0

    def seconds(values: float, speed: float | None) -> float | None:
        return None if speed is None or ratio is None else values * ratio / (speed * _GIB)

    return TimeBounds(
        seconds(float(layout.host_bytes.max(initial=0)), speeds.write),
        seconds(float(reading.least.max(initial=0)), speeds.read),
    )


def foretold(layout: SaveLayout, reading: ReadCost, options: StorageOptions) -> Iterator[str]:
    """Yields what will fail, and what to do.

    Orbax raises `ValueError: Requested more bytes than we reserved space for` when one shard does
    not fit under a limit on bytes in flight: it does not wait.
    """
    largest = max(layout.arrays, key=lambda array: array.write_bytes)
    limit = options.save_limit
    if limit is not None and largest.write_bytes >= limit:
        yield (
            f"the save will fail: {largest.name} is written in parts of "
            f"{num_bytes(largest.write_bytes)}, and save_concurrent_gb allows {num_bytes(limit)}; "
            "raise it above that, or cut the array further"
        )
    yield from reading.failures(options.load_limit)
