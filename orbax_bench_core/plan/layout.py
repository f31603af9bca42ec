"""Layout of a save: chunks, files and bytes of every array and host, before anything is written.

The rules are those of orbax-checkpoint 0.12.8 and TensorStore 0.1.86, and are held against real
saves by the tests and by `python -m tests.support.real_saves`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.config import ShardingEntry
from orbax_bench_core.plan.meshes import PlanMesh
from orbax_bench_core.plan.options import StorageOptions
from orbax_bench_core.plan.trees import PlannedTree, onto

if TYPE_CHECKING:
    import numpy as np

INLINE_BYTES: Final = 1024
"""OCDBT keeps values up to this size in its B-tree nodes, which do not count for data files."""

_INLINE_OVERHEAD: Final = 3
"""Bytes of a Zarr 3 chunk's index in a compressed B-tree node."""

_COMMITS_PER_NUMBER: Final = 4
"""Most files that OCDBT leaves for a Python number beside the data: each has commits of its own."""


_FIXED_FILES: Final = 5
"""`_CHECKPOINT_METADATA`, `commit_success.txt`, `orbax.checkpoint`, `_METADATA` and `_sharding`."""


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
        num_chunks: Chunks of the whole array on storage.
        chunk_bytes: Stored bytes of one chunk, without compression.
        parallel: Whether all replicas write a part.
        folder: Whether it goes to the folders of replicas.
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
    num_chunks: int
    chunk_bytes: int
    parallel: bool
    folder: bool

    @property
    def chunks_per_write(self) -> int:
        """Chunks of one write."""
        pairs = zip(self.write_shape, self.chunk_shape, strict=True)
        return math.prod(math.ceil(size / chunk) for size, chunk in pairs)


@dataclasses.dataclass(frozen=True, slots=True)
class Amount:
    """A number of files or bytes that a save leaves.

    Attributes:
        least: The fewest.
        most: The most; None if there is no bound.
        expected: The value that the rules give.
    """

    least: int
    most: int | None
    expected: int

    @property
    def is_exact(self) -> bool:
        """Whether it can be no other."""
        return self.least == self.most


@dataclasses.dataclass(frozen=True, slots=True)
class SaveLayout:
    """A save on a mesh.

    Attributes:
        arrays: How each array is saved.
        files: Number of files.
        num_bytes: Bytes of all files without compression, metadata included.
        metadata_bytes: Of these, about the bytes of metadata.
        host_bytes: Array bytes that each host writes, of shape (hosts,).
        host_chunks: Chunks that each host writes, of shape (hosts,).
        reasons: Why files or bytes are not exact.
    """

    arrays: tuple[ArrayLayout, ...]
    files: Amount
    num_bytes: int
    metadata_bytes: int
    host_bytes: np.ndarray
    host_chunks: np.ndarray
    reasons: tuple[str, ...]


def predict(tree: PlannedTree, mesh: PlanMesh, options: StorageOptions) -> SaveLayout:
    """Predicts files, chunks and bytes of a save."""
    arrays = tuple(_array(tree, index, mesh, options) for index in range(len(tree.arrays)))
    host_bytes, host_chunks = _per_host(arrays, mesh)
    described = _metadata_bytes(tree, arrays, mesh, options)
    files, reasons = _files(tree, arrays, mesh, options)
    return SaveLayout(
        arrays=arrays,
        files=files,
        num_bytes=_stored_bytes(arrays, options) + described,
        metadata_bytes=described,
        host_bytes=host_bytes,
        host_chunks=host_chunks,
        reasons=reasons,
    )


def _array(tree: PlannedTree, index: int, mesh: PlanMesh, options: StorageOptions) -> ArrayLayout:
    array = tree.arrays[index]
    spec = onto(array, mesh)
    shard = mesh.shard(array.shape, spec)
    replicas = mesh.num_devices // mesh.size(tuple(mesh.used(spec)))
    axis = _replica_axis(shard, replicas) if options.use_replica_parallel else None
    written = tuple(
        size // replicas if dimension == axis else size for dimension, size in enumerate(shard)
    )
    chunk = chunk_shape(array.shape, written, array.itemsize, options)
    chunks = math.prod(
        math.ceil(size / part) for size, part in zip(array.shape, chunk, strict=True)
    )
    separate = options.enable_replica_parallel_separate_folder
    return ArrayLayout(
        name=array.name,
        shape=array.shape,
        dtype=array.dtype,
        spec=spec,
        shard_shape=shard,
        replicas=replicas,
        write_shape=written,
        chunk_shape=chunk,
        num_bytes=array.num_bytes,
        shard_bytes=math.prod(shard) * array.itemsize,
        write_bytes=math.prod(written) * array.itemsize,
        num_chunks=chunks,
        chunk_bytes=math.prod(chunk) * array.itemsize + options.chunk_overhead,
        parallel=axis is not None,
        folder=separate and _looks_replicated(spec, mesh),
    )


def _replica_axis(shard: Sequence[int], replicas: int) -> int | None:
    """Returns the first dimension that replicas can share evenly."""
    if replicas <= 1 or not math.prod(shard):
        return None
    return next((d for d, size in enumerate(shard) if size % replicas == 0), None)


def _looks_replicated(spec: Sequence[ShardingEntry], mesh: PlanMesh) -> bool:
    """Does the same as `jax_array_handlers._is_replicated_sharding`: it counts entries alone."""
    return len(mesh.axes) > len(spec) or not spec or any(entry is None for entry in spec)


def _pattern(array: ArrayLayout, mesh: PlanMesh) -> frozenset[str] | None:
    """Returns the axes that cut an array and so decide who writes; None if all devices do."""
    return None if array.parallel else mesh.used(array.spec)


def _writers(pattern: frozenset[str] | None, mesh: PlanMesh) -> np.ndarray:
    import numpy as np

    if pattern is None:
        return np.full(mesh.num_hosts, mesh.devices_per_host)
    return mesh.writers(pattern)


def _per_host(arrays: Sequence[ArrayLayout], mesh: PlanMesh) -> tuple[np.ndarray, np.ndarray]:
    """Returns bytes and chunks that each host writes."""
    import numpy as np

    weights: dict[frozenset[str] | None, list[int]] = {}
    for array in arrays:
        found = weights.setdefault(_pattern(array, mesh), [0, 0])
        found[0] += array.write_bytes
        found[1] += array.chunks_per_write if array.num_bytes else 0
    num_bytes = np.zeros(mesh.num_hosts, dtype=np.int64)
    chunks = np.zeros(mesh.num_hosts, dtype=np.int64)
    for pattern, (weight, count) in weights.items():
        writers = _writers(pattern, mesh)
        num_bytes += writers * weight
        chunks += writers * count
    return num_bytes, chunks


def _stored_bytes(arrays: Sequence[ArrayLayout], options: StorageOptions) -> int:
    """Returns the bytes of all chunks; a process's B-tree nodes are copied into the whole."""
    found = 0
    for array in arrays:
        size = array.chunk_bytes
        if options.use_ocdbt and size <= INLINE_BYTES:
            overhead = min(options.chunk_overhead, _INLINE_OVERHEAD)
            size = 2 * (size - options.chunk_overhead + overhead)
        found += array.num_chunks * size if array.num_bytes else 0
    return found


def _metadata_bytes(
    tree: PlannedTree, arrays: Sequence[ArrayLayout], mesh: PlanMesh, options: StorageOptions
) -> int:
    """Estimates the bytes of metadata from those of real saves, whose texts differ by little."""
    paths = [*(array.path for array in tree.arrays), *tree.numbers, *tree.strings]
    # `_METADATA` has each key of each leaf twice, and `_sharding` each device for each array.
    found = 480 + sum(120 + sum(35 + 2 * len(str(key)) for key in path) for path in paths)
    found += len(arrays) * (240 + mesh.num_devices * (12 + len(str(mesh.num_devices))))
    found += mesh.num_hosts * sum(90 + len(array.name) + 9 * len(array.shape) for array in arrays)
    stored = len(arrays) + len(tree.numbers)
    if not options.use_ocdbt:
        return found + stored * (440 if options.use_zarr3 else 150)
    keys = sum(array.num_chunks for array in arrays) + len(tree.numbers)
    return found + 480 * (min(mesh.num_hosts, keys) + 1) + 7 * keys + 8 * stored


def _files(
    tree: PlannedTree, arrays: Sequence[ArrayLayout], mesh: PlanMesh, options: StorageOptions
) -> tuple[Amount, tuple[str, ...]]:
    fixed = _FIXED_FILES + mesh.num_hosts + bool(tree.strings)
    if not options.use_ocdbt:
        number = len(arrays) + sum(array.num_chunks for array in arrays if array.num_bytes)
        number += fixed + 2 * len(tree.numbers)
        return Amount(number, number, number), ()
    low, most, expected = fixed + 2, fixed + 2, fixed + 2
    reasons: list[str] = []
    for times, database in _databases(tree, arrays, mesh):
        found = _data_files(database, options)
        low, expected = low + times * (1 + found.least), expected + times * (1 + found.expected)
        most += times * (1 + (found.most or 0))
    if low != most:
        reasons.append(
            "chunks of several sizes fill data files in the order in which they are done"
            if not options.use_compression
            else "how far data compress decides how many data files are filled"
        )
    if options.save_limit is not None:
        reasons.append("with a limit on saving, every array is committed to OCDBT by itself")
        commits = sum(array.num_chunks + 2 for array in arrays)
        most += _COMMITS_PER_NUMBER * commits
    if tree.numbers:
        reasons.append("every Python number is committed to OCDBT by itself")
        low += 1
        expected += _COMMITS_PER_NUMBER - 1 if len(tree.numbers) == 1 else _COMMITS_PER_NUMBER + 1
        most += _COMMITS_PER_NUMBER * len(tree.numbers) + 1
    return Amount(low, most, expected), tuple(reasons)


def _databases(
    tree: PlannedTree, arrays: Sequence[ArrayLayout], mesh: PlanMesh
) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yields the databases of all processes, alike ones together."""
    import numpy as np

    for in_folder in (False, True):
        chosen = [array for array in arrays if array.folder == in_folder]
        # Process 0 writes the metadata of all arrays, and all Python numbers.
        first = bool(chosen) or (bool(tree.numbers) and not in_folder)
        patterns = list(dict.fromkeys(_pattern(array, mesh) for array in chosen))
        if not patterns:
            if first:
                yield 1, []
            continue
        table = np.stack([_writers(pattern, mesh) for pattern in patterns], axis=1)
        table = np.concatenate([table, np.arange(mesh.num_hosts)[:, None] == 0], axis=1)
        alike, counts = np.unique(table, axis=0, return_counts=True)
        for row, times in zip(alike.tolist(), counts.tolist(), strict=True):
            writers = dict(zip(patterns, row, strict=False))
            chunks = [
                (writers[_pattern(array, mesh)] * array.chunks_per_write, array.chunk_bytes)
                for array in chosen
                if array.num_bytes and writers[_pattern(array, mesh)]
            ]
            if chunks or row[-1]:
                yield times, chunks


def _data_files(chunks: Sequence[tuple[int, int]], options: StorageOptions) -> Amount:
    """Returns the data files of one database: those that were filled, and one with its nodes."""
    stored = [(number, size) for number, size in chunks if size > INLINE_BYTES]
    total = sum(number * size for number, size in stored)
    if not options.target or total < options.target:
        return Amount(1, 1, 1)
    expected = 1 + _filled(stored, options.target)
    if options.use_compression:
        return Amount(1, 1 + total // options.target, expected)
    if len({size for _, size in stored}) == 1:
        return Amount(expected, expected, expected)
    largest = max(size for _, size in stored)
    # A file is closed with at least `target` bytes, and less than `target` and a chunk.
    least = 1 + total // (options.target + largest)
    return Amount(min(least, expected), 1 + total // options.target, expected)


def _filled(stored: Sequence[tuple[int, int]], target: int) -> int:
    """Returns how many data files are closed as chunks are written in tree order."""
    closed = held = 0
    for number, size in stored:
        rest = number
        needed = math.ceil((target - held) / size)
        if rest < needed:
            held += rest * size
            continue
        closed, rest = closed + 1, rest - needed
        per_file = math.ceil(target / size)
        closed, held = closed + rest // per_file, rest % per_file * size
    return closed


def chunk_shape(
    shape: tuple[int, ...], write_shape: tuple[int, ...], itemsize: int, options: StorageOptions
) -> tuple[int, ...]:
    """Returns the shape of the chunks that Orbax cuts an array into.

    The rule is that of `subchunking.choose_chunk_shape` and
    `tensorstore_utils.calculate_chunk_byte_size` in orbax-checkpoint 0.12.8, without `shard_axes`:
    the largest dimension that is cut already is cut further by its divisors, until a chunk is
    small enough; only then dimensions that are whole. One process writes `write_shape` at a time.
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
