"""Where the elements of a leaf go: the sharding rules of a checkpoint spec."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from orbax_bench_core.config import dtypes
from orbax_bench_core.config.checkpoint import ArraySpec, ShardingEntry
from orbax_bench_core.state.errors import StateError


def sharding_of(leaf: str, spec: ArraySpec, mesh: Mesh | None) -> NamedSharding | None:
    """Returns the sharding that a spec asks for.

    Args:
        leaf: Dotted path of the leaf, for messages.
        spec: The array; without `sharding` it is replicated over the whole mesh.
        mesh: The mesh, or None for the single default device.

    Returns:
        The sharding, or None for the default device.

    Raises:
        StateError: There is a sharding but no mesh, or the two do not fit together.
    """
    if mesh is None:
        if spec.sharding is None:
            return None
        raise StateError(
            f"leaf {leaf!r}: sharding {list(spec.sharding)} needs a mesh, and there is none; add a "
            "mesh_config or remove the sharding"
        )
    return named_sharding(leaf, spec.shape, spec.sharding or (), mesh)


def named_sharding(
    leaf: str, shape: Sequence[int], entries: Sequence[ShardingEntry], mesh: Mesh
) -> NamedSharding:
    """Builds a sharding after checking that it partitions the array evenly.

    Args:
        leaf: Dotted path of the leaf, for messages.
        shape: Global shape, in elements.
        entries: Axis name, names, or None for each leading dimension.
        mesh: The mesh whose axes the entries name.

    Raises:
        StateError: An axis is unknown or used twice, or does not divide its dimension.
    """
    used: list[str] = []
    for dimension, entry in enumerate(entries):
        axes = (entry,) if isinstance(entry, str) else tuple(entry or ())
        _check_axes(leaf, axes, used, mesh)
        _check_even(leaf, dimension, shape[dimension], axes, mesh)
        used.extend(axes)
    return NamedSharding(mesh, jax.sharding.PartitionSpec(*entries))


def local_bytes(spec: ArraySpec, sharding: NamedSharding | None) -> int:
    """Returns the bytes that an array takes on the devices of this process, replicas included.

    Args:
        spec: The array.
        sharding: Its sharding, or None for one device.
    """
    if sharding is None:
        return spec.num_bytes
    shard = math.prod(sharding.shard_shape(spec.shape))
    return shard * dtypes.BITS[spec.dtype] // 8 * len(sharding.addressable_devices)


def spread(shape: Sequence[int], devices: Sequence[jax.Device]) -> NamedSharding:
    """Shards an array over as many of the devices as its dimensions allow, evenly.

    The device count is split into prime factors, one mesh axis each; every factor goes to the
    dimension that is longest so far and that it divides. What is left over replicates.

    Args:
        shape: Global shape, in elements.
        devices: The devices, in mesh order.
    """
    # JAX 0.5 counts no devices in a mesh without axes.
    factors = _prime_factors(len(devices)) or [1]
    axes = tuple(f"factor{index}" for index in range(len(factors)))
    mesh = Mesh(np.array(devices, dtype=object).reshape(factors), axes)
    remaining = list(shape)
    entries: list[list[str]] = [[] for _ in shape]
    for axis, factor in zip(axes, factors, strict=True):
        fitting = [d for d, size in enumerate(remaining) if size and size % factor == 0]
        if fitting:
            dimension = max(fitting, key=lambda d: remaining[d])
            remaining[dimension] //= factor
            entries[dimension].append(axis)
    return NamedSharding(
        mesh, jax.sharding.PartitionSpec(*(tuple(names) or None for names in entries))
    )


def _check_axes(leaf: str, axes: Sequence[str], used: Sequence[str], mesh: Mesh) -> None:
    for axis in axes:
        if axis not in mesh.axis_names:
            raise StateError(
                f"leaf {leaf!r}: axis {axis!r} is not one of the mesh axes "
                f"{list(mesh.axis_names)}; name one of these or add it to mesh_axes"
            )
        if axis in used or axes.count(axis) > 1:
            raise StateError(
                f"leaf {leaf!r}: axis {axis!r} shards two dimensions; each axis may shard one"
            )


def _check_even(leaf: str, dimension: int, size: int, axes: Sequence[str], mesh: Mesh) -> None:
    parts = math.prod(mesh.shape[axis] for axis in axes)
    if size % parts == 0:
        return
    names = " and ".join(repr(axis) for axis in axes)
    which = f"axis {names}" if len(axes) == 1 else f"axes {names}"
    verb = "does" if len(axes) == 1 else "do"
    raise StateError(
        f"leaf {leaf!r}: dimension {dimension} has {size} elements, which {which} of size {parts} "
        f"{verb} not divide; use a multiple of {parts} or shard another dimension"
    )


def _prime_factors(number: int) -> list[int]:
    factors = []
    divisor = 2
    while number > 1:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return factors
