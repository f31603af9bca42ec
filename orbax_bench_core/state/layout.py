"""Array layout: shardings of a spec, dtypes that JAX can compute with, programs over shards."""

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from orbax_bench_core import config
from orbax_bench_core.config import ArraySpec, ShardingEntry
from orbax_bench_core.state.tree import StateError

NEEDS_X64: Final = frozenset({"int64", "uint64", "float64", "complex128"})
"""Dtypes that JAX silently narrows unless `jax_enable_x64` is on."""

NUMPY_ONLY: Final = frozenset({"int1", "uint1", "float6_e2m3fn", "float6_e3m2fn"})
"""Dtypes that JAX names but whose arithmetic it cannot compile."""

_WIDE_REGISTERS: Final = {"xla_cpu_prefer_vector_width": 512}

_LATE: Final = frozenset({"float4_e2m1fn", "float8_e8m0fnu"})
"""Dtypes that the oldest JAX of ours lacks."""


def sharding_of(leaf: str, spec: ArraySpec, mesh: Mesh | None) -> NamedSharding | None:
    """Returns the sharding that a spec asks for; None without a mesh, for one device.

    Raises:
        StateError: There is no mesh, or it does not split the array evenly.
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
        leaf: Name of the array, for messages.
        shape: Elements in each dimension.
        entries: Mesh axes that split each dimension, of which later ones may lack.
        mesh: The mesh.

    Raises:
        StateError: An axis is unknown, is used twice, or does not divide its dimension.
    """
    used: list[str] = []
    for dimension, entry in enumerate(entries):
        axes = (entry,) if isinstance(entry, str) else tuple(entry or ())
        _check_axes(leaf, axes, used, mesh)
        _check_even(leaf, dimension, shape[dimension], axes, mesh)
        used.extend(axes)
    return NamedSharding(mesh, jax.sharding.PartitionSpec(*entries))


def local_bytes(spec: ArraySpec, sharding: NamedSharding | None) -> int:
    """Returns the bytes that an array takes on the devices of this process, replicas included."""
    if sharding is None:
        return spec.num_bytes
    shard = math.prod(sharding.shard_shape(spec.shape))
    return shard * config.BITS[spec.dtype] // 8 * len(sharding.addressable_devices)


def spread(shape: Sequence[int], devices: Sequence[jax.Device]) -> NamedSharding:
    """Shards an array over as many of the devices as its dimensions allow, evenly."""
    # The device count is split into prime factors, one mesh axis each; every factor goes to the
    # dimension that is longest so far and that it divides. What is left over replicates.
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


def check_dtype(leaf: str, dtype: str) -> None:
    """Checks that arrays of `dtype` can be made by this process.

    Args:
        leaf: Dotted path of the array, for the message.
        dtype: Canonical name of the dtype.

    Raises:
        StateError: The installed JAX lacks it, it needs 64-bit types, which are off, or JAX cannot
            compute with it on this backend.
    """
    if dtype in NUMPY_ONLY:
        raise StateError(
            f"leaf {leaf!r}: JAX cannot compute with {dtype}; use int2, uint2, float4_e2m1fn or a "
            "wider dtype"
        )
    if dtype in _LATE and not hasattr(jax.numpy, dtype):
        raise StateError(
            f"leaf {leaf!r}: JAX {jax.__version__} has no {dtype}; use a later JAX or another dtype"
        )
    if dtype in NEEDS_X64 and jax.dtypes.canonicalize_dtype("int64").itemsize < 8:
        raise StateError(
            f"leaf {leaf!r}: {dtype} needs 64-bit mode, which is off; set JAX_ENABLE_X64=true or "
            "use a dtype of at most 32 bits"
        )


def needs_wide_index(shape: Sequence[int]) -> bool:
    """Says whether the linear index of an element of `shape` may exceed 32 bits."""
    return math.prod(shape) >= 2**32


def wide(shape: Sequence[int], dtype: str) -> contextlib.AbstractContextManager[object]:
    """Returns a context in which a program over such an array may use 64-bit integers."""
    if dtype not in NEEDS_X64 and not needs_wide_index(shape):
        return contextlib.nullcontext()
    before_0_8: Any = jax.experimental
    enable: Any = jax.enable_x64 if hasattr(jax, "enable_x64") else before_0_8.enable_x64
    context: contextlib.AbstractContextManager[object] = enable(True)
    return context


def offsets(sharding: NamedSharding, shape: tuple[int, ...]) -> list[jax.Array]:
    """Returns where the shard of the device that runs this begins, a scalar for each dimension.

    Call it inside `over_shards`; from 2**32 elements on, 64-bit mode must be on.
    """
    # The partitioner's own offsets are 32-bit and signed, which is too little for long dimensions.
    kind = jnp.uint64 if needs_wide_index(shape) else jnp.uint32
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
    """Compiles `program` for all devices of a sharding, without any collective or check."""
    specs: dict[str, Any] = {"mesh": sharding.mesh, "in_specs": inputs, "out_specs": outputs}
    if hasattr(jax, "shard_map"):
        return compiled(jax.shard_map(program, **specs, check_vma=False))
    from jax.experimental import shard_map as before_0_6

    return compiled(before_0_6.shard_map(program, **specs, check_rep=False))


def compiled(program: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Compiles a program that computes with many elements one by one."""
    # On CPUs it may use the widest registers that there are. By default XLA leaves half of those of
    # AVX-512 alone, which takes programs of integer arithmetic twice the time, for the same bits.
    options = _WIDE_REGISTERS if jax.default_backend() == "cpu" else None
    ready: Callable[..., jax.Array] = jax.jit(program, compiler_options=options)
    return ready


def split_axes(sharding: NamedSharding) -> set[str]:
    """Returns the mesh axes that split an array."""
    entries = (entry if isinstance(entry, tuple) else (entry,) for entry in sharding.spec)
    return {axis for entry in entries for axis in entry if axis is not None}
