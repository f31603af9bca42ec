"""Spread of arrays over the ranks of PyTorch: the part of each process, and the grid of all."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.sharding import Mesh, PartitionSpec, Sharding

from orbax_bench_core.interface import UnmetNeed

Box = tuple[slice, ...]
"""A part of an array: where it begins and ends in each dimension."""


@dataclasses.dataclass(frozen=True)
class Ranks:
    """Spread of an array over the processes."""

    grid: np.ndarray[Any, np.dtype[np.int64]]  # index of the process at each place of the mesh
    axes: tuple[str, ...]  # of the grid
    dimensions: tuple[int | None, ...]  # of the array, which each axis shards or replicates


def part_of_process(name: str, shape: tuple[int, ...], sharding: Sharding, *, join: bool) -> Box:
    """Returns the part of an array that this process holds.

    Args:
        name: The array, for the message.
        shape: Its whole shape.
        sharding: How JAX lays it out.
        join: Whether the shards of a process may become one tensor.

    Raises:
        UnmetNeed: A process holds several shards that may not be joined, or that are no box
            together.
    """
    devices = sharding.addressable_devices
    if len(devices) > 1 and not join:
        wanted = len(sharding.device_set)
        raise UnmetNeed(
            f"PyTorch has one device per process, and here a process has {len(devices)}: set "
            f"processes: {wanted} under execution for as many shards as Orbax has, or "
            "join_local_shards: true to have the shards of a process as one"
        )
    held = sharding.addressable_devices_indices_map(shape).values()
    boxes = {boundaries(box, shape) for box in held if box is not None}
    around = tuple(
        (min(box[axis][0] for box in boxes), max(box[axis][1] for box in boxes))
        for axis in range(len(shape))
    )
    if _volume(around) != sum(map(_volume, boxes)):
        raise UnmetNeed(
            f"PyTorch has one tensor per process; the shards of {name!r} that a process holds are "
            "not side by side: set as many processes as devices, or other axes in its sharding"
        )
    return tuple(slice(*ends) for ends in around)


def owners(mesh: Mesh) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns the index of the process that each device of a mesh belongs to."""
    devices = mesh.devices
    return np.array([device.process_index for device in devices.flat], np.int64).reshape(
        devices.shape
    )


def over_ranks(
    owners: np.ndarray[Any, np.dtype[np.int64]], axes: Sequence[str], spec: PartitionSpec
) -> Ranks:
    """Returns how an array is spread over processes, as a `DeviceMesh` and its placements say.

    Args:
        owners: Process of each device of the mesh, in its shape.
        axes: Names of the axes of the mesh.
        spec: Which axes shard each dimension of the array.

    Raises:
        UnmetNeed: The devices of a process are no block of the mesh.
    """
    # A `DeviceMesh` cuts a dimension by its first axis first. Where a sharding names its axes in
    # another order, the axes of the grid change places.
    names = list(axes)
    blocks = [_first_run(owners, axis) for axis in range(owners.ndim)]
    grid = owners[tuple(slice(None, None, size) for size in blocks)]
    whole = grid
    for axis, size in enumerate(blocks):
        whole = np.repeat(whole, size, axis=axis)
    # A process may come again only within its own block.
    if not np.array_equal(whole, owners) or len(np.unique(grid)) != grid.size:
        raise UnmetNeed(
            "PyTorch lays processes out as a grid, and the devices of each are no block of the "
            f"mesh {dict(zip(names, owners.shape, strict=True))}: set as many processes as devices"
        )
    shards = {
        axis: dimension
        for dimension, entry in enumerate(spec)
        for axis in ((entry,) if isinstance(entry, str) else entry or ())
    }
    replicating = [name for name in names if name not in shards]
    order = names if _is_in_order(shards, names) else [*shards, *replicating]
    return Ranks(
        grid=grid.transpose([names.index(name) for name in order]),
        axes=tuple(order),
        dimensions=tuple(shards.get(name) for name in order),
    )


def boundaries(box: Sequence[slice], shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Returns where a part of an array begins and ends in each dimension."""
    return tuple(part.indices(size)[:2] for part, size in zip(box, shape, strict=True))


def within(box: Sequence[slice], outer: Sequence[slice], shape: Sequence[int]) -> Box:
    """Returns a part of an array as a part of another part that holds it."""
    pairs = zip(boundaries(box, shape), boundaries(outer, shape), strict=True)
    return tuple(slice(start - first, stop - first) for (start, stop), (first, _) in pairs)


def _volume(box: Sequence[tuple[int, int]]) -> int:
    return math.prod(stop - start for start, stop in box)


def _first_run(owners: np.ndarray[Any, Any], axis: int) -> int:
    """Returns how many places along an axis belong to the process at the origin."""
    line = owners[tuple(slice(None) if each == axis else 0 for each in range(owners.ndim))]
    others = np.flatnonzero(line != line[0])
    return int(others[0]) if others.size else len(line)


def _is_in_order(shards: dict[str, int], names: list[str]) -> bool:
    """Says whether the axes that shard one dimension follow each other as in the mesh."""
    positions = [(dimension, names.index(axis)) for axis, dimension in shards.items()]
    return positions == sorted(positions)
