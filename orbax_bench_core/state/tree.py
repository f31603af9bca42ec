"""Pytrees: names of leaves, sizes of arrays, and memory that this process may still take."""

import ctypes
from collections.abc import Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from orbax_bench_core.errors import UserError
from orbax_bench_core.measure import free_memory_bytes

PyTree = Any

_LOAD_ON_HOST: Final = 2.1
"""Most memory that a load was seen to take, over the bytes of its arrays (`perf.memory`)."""


class StateError(ValueError):
    """The checkpoint, mesh or path that was asked for cannot be made or read here."""

    def __init__(self, message: str) -> None:
        super().__init__("\n".join(UserError(message).said))


def named_leaves(tree: PyTree) -> list[tuple[str, Any]]:
    """Returns every leaf of `tree` with its dotted path, in the order of `jax.tree.leaves`.

    Raises:
        StateError: Two leaves have one dotted path, so that a digest could not tell them apart.
    """
    named: dict[str, Any] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = _leaf_name(path)
        if name in named:
            raise StateError(f"two leaves are called {name!r}; rename one of them")
        named[name] = leaf
    return list(named.items())


def _leaf_name(path: Sequence[Any]) -> str:
    # The same as `jax.tree_util.keystr(path, simple=True, separator=".")`, which 0.5.0 lacks.
    return ".".join(str(_bare(key)) for key in path)


def _bare(key: Any) -> Any:
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return getattr(key, attribute)
    return key


def tree_bytes(tree: Any) -> int:
    """Returns the bytes of all arrays of a tree, exactly."""
    # JAX and NumPy arrays count with their global shape, replicas once, types of less than a byte
    # as a byte; other leaves count nothing.
    return sum(
        leaf.nbytes
        for leaf in jax.tree.leaves(tree)
        if isinstance(leaf, (jax.Array, np.ndarray, np.generic))
    )


def without_host_copies(tree: PyTree) -> PyTree:
    """Returns the arrays of a tree as new objects on the same device memory.

    A `jax.Array` keeps the host copy that a save made of it, so that the next save of the same
    object moves nothing off the device. A training step replaces its arrays: a job's saves never
    meet such a copy, and measured ones must not either. On CPU devices nothing is copied anyway.
    """

    def of(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array) or jnp.issubdtype(leaf.dtype, jax.dtypes.extended):
            return leaf
        shards = [shard.data for shard in leaf.addressable_shards]
        if not shards:
            return leaf
        return jax.make_array_from_single_device_arrays(leaf.shape, leaf.sharding, shards)

    return jax.tree.map(of, tree)


def available_bytes() -> int:
    """Returns the free bytes of the memory that holds arrays: of the local devices together."""
    # CPU devices share the memory of the host, or what is left of its container's. An accelerator
    # that reports no statistics counts as the host does.
    free = [_free(device.memory_stats()) for device in jax.local_devices()]
    known = [count for count in free if count is not None]
    return sum(known) if known else free_memory_bytes()


def load_fits(tree: Any) -> bool:
    """Says whether a tree can be loaded while it is still held."""
    # A load needs room for the arrays on the devices. On CPUs that is the same memory in which the
    # bytes lie as they are read and decoded; of one large array both are there at once.
    on_host = all(_free(device.memory_stats()) is None for device in jax.local_devices())
    needed = held_bytes(tree) * (_LOAD_ON_HOST if on_host else 1.0)
    return agreed_bytes(round(needed)) <= agreed_bytes(available_bytes())


def release_freed() -> None:
    """Gives memory that is freed back to the system, as far as the C library can."""
    # It keeps pieces of any size for later, and those of a save are too small for the arrays of a
    # load.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # it is glibc's own
        trim(0)


def agreed_bytes(count: int) -> int:
    """Returns process 0's value, to the MiB, so that all processes take the same decisions."""
    if jax.process_count() == 1:
        return count
    return int(multihost_utils.broadcast_one_to_all(np.uint32(count >> 20))) << 20


def held_bytes(tree: Any) -> int:
    """Returns the bytes that the arrays of a tree take on this process's devices."""
    return sum(
        shard.data.nbytes
        for leaf in jax.tree.leaves(tree)
        if isinstance(leaf, jax.Array)
        for shard in leaf.addressable_shards
    )


def _free(stats: dict[str, int] | None) -> int | None:
    if not stats or "bytes_limit" not in stats:
        return None
    return stats["bytes_limit"] - stats.get("bytes_in_use", 0)
