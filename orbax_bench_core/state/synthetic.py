"""Synthetic state: a tree of ready arrays from a spec.

A value depends on the seed, the path of its leaf and its index in the whole array, and on nothing
else: not on the mesh, the sharding, the number of processes or the backend. Each device computes
its own shards in one fused program, so nothing but the arrays themselves takes memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding

from orbax_bench_core.config import ArraySpec, Spec
from orbax_bench_core.state import hashing, layout, values

PyTree = Any

SCALARS: Final[Mapping[str, int | str]] = {"int": 1234, "str": "synthetic"}
"""Values of the `int` and `str` leaves; not zero or empty, so that a lost value is seen."""

_PARTS: Final = {"complex64": "float32", "complex128": "float64"}


def generate(spec: Spec, *, seed: int, mesh: Mesh | None) -> PyTree:
    """Makes the tree that a spec describes.

    Raises:
        StateError: A sharding does not fit the mesh or the shape, or JAX cannot hold a dtype.
    """
    return jax.block_until_ready(_tree(spec, seed, mesh, ""))


def _tree(spec: Spec, seed: int, mesh: Mesh | None, prefix: str) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, node in spec.items():
        path = f"{prefix}{name}"
        if isinstance(node, Mapping):
            tree[name] = _tree(node, seed, mesh, f"{path}.")
        elif isinstance(node, ArraySpec):
            made = _array(path, node, seed, None if node.host else mesh)
            # A copy: what JAX hands out shares its memory and cannot be written to.
            tree[name] = np.array(made) if node.host else made
        else:
            tree[name] = SCALARS[node]
    return tree


def _array(path: str, spec: ArraySpec, seed: int, mesh: Mesh | None) -> jax.Array:
    layout.check_dtype(path, spec.dtype)
    program = _program(spec.shape, spec.dtype, layout.sharding_of(path, spec, mesh))
    with layout.wide(spec.shape, spec.dtype):
        return program(hashing.leaf_key(seed, path))


@functools.cache
def _program(
    shape: tuple[int, ...], dtype: str, sharding: NamedSharding | None
) -> Callable[[Any], jax.Array]:
    """Compiles once for all leaves of one shape, dtype and sharding; the key is an argument."""
    block = shape if sharding is None else sharding.shard_shape(shape)

    def make(key: jax.Array) -> jax.Array:
        offsets = None if sharding is None else layout.offsets(sharding, shape)
        low, high = hashing.linear_index(block, global_shape=shape, offsets=offsets)
        if dtype not in _PARTS:
            return values.encode(dtype, hashing.random_word(low, high, key))
        real, imaginary = (
            values.encode(_PARTS[dtype], hashing.random_word(low, high, part))
            for part in (key, hashing.imaginary_key(key))
        )
        return lax.complex(real, imaginary)

    if sharding is None:
        return layout.compiled(make)
    return layout.over_shards(
        make, sharding, inputs=jax.sharding.PartitionSpec(), outputs=sharding.spec
    )
