"""What a sharding makes of an array, and programs that run over each shard on its own device."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from orbax_bench_core.state import jax_api, precision


def offsets(sharding: NamedSharding, shape: tuple[int, ...]) -> list[jax.Array]:
    """Returns where the shard of the device that runs this begins, in each dimension.

    The partitioner's own offsets are 32-bit and signed, which is too little for long dimensions.

    Args:
        sharding: Sharding of the array; call this inside `over_shards`.
        shape: Global shape, in elements. From 2**32 elements on, 64-bit mode must be on.
    """
    kind = jnp.uint64 if precision.needs_wide_index(shape) else jnp.uint32
    extents = sharding.shard_shape(shape)
    entries = [*sharding.spec, *[None] * (len(shape) - len(sharding.spec))]
    return [
        jnp.zeros((), kind) if not entry else lax.axis_index(entry).astype(kind) * extent
        for entry, extent in zip(entries, extents, strict=True)
    ]


def over_shards(
    program: Callable[[jax.Array], jax.Array],
    sharding: NamedSharding,
    *,
    inputs: PartitionSpec,
    outputs: PartitionSpec,
) -> Callable[[jax.Array], jax.Array]:
    """Compiles `program` for all devices of a sharding, without any collective.

    Args:
        program: Takes and returns the part of one device.
        sharding: The devices, and the names of their axes.
        inputs: How the argument is split.
        outputs: How the result is put together.
    """
    mapped = jax_api.shard_map(program, sharding.mesh, inputs=inputs, outputs=outputs)
    compiled: Callable[[jax.Array], jax.Array] = jax.jit(mapped)
    return compiled


def split_axes(sharding: NamedSharding) -> set[str]:
    """Returns the mesh axes that split an array.

    Args:
        sharding: How it is laid out.
    """
    entries = (entry if isinstance(entry, tuple) else (entry,) for entry in sharding.spec)
    return {axis for entry in entries for axis in entry if axis is not None}
