from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from orbax_bench_core.state import digests, hashing

_lanes = jax.jit(hashing.content_lanes)


def _sums(array: jax.Array) -> digests.LaneSums:
    return digests.finish(array, digests.start_digest(array))


def _reference(values: np.ndarray[Any, Any]) -> digests.LaneSums:
    """The sums of the hashes of 32-bit values, without any layout."""
    index = jnp.arange(values.size, dtype=jnp.uint32)
    lanes = _lanes([jnp.asarray(values.ravel())], index, jnp.uint32(0))
    first, second = (int(np.asarray(lane).astype(np.uint64).sum() % 2**32) for lane in lanes)
    return first, second


@pytest.mark.slow
def test_sums_are_those_of_the_element_hashes(mesh8: Mesh) -> None:
    values = np.arange(64, dtype=np.uint32).reshape(8, 8) ** 5
    array = jax.device_put(values, NamedSharding(mesh8, PartitionSpec("x")))
    assert _sums(array) == _reference(values)


def test_an_explicit_mesh_has_the_same_sums() -> None:
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    values = np.arange(64, dtype=np.uint32).reshape(8, 8)
    array = jax.device_put(values, NamedSharding(mesh, PartitionSpec("y", "x")))
    assert _sums(array) == _reference(values)


def test_arrays_in_host_memory_have_the_same_sums(mesh8: Mesh) -> None:
    values = np.arange(64, dtype=np.uint32)
    sharding = NamedSharding(mesh8, PartitionSpec("x"), memory_kind="pinned_host")
    assert _sums(jax.device_put(values, sharding)) == _reference(values)


@pytest.mark.slow
def test_numpy_arrays_have_the_same_sums() -> None:
    values = np.arange(60, dtype=np.uint32).reshape(3, 4, 5)
    assert digests.host_sums(values) == _reference(values)


@pytest.mark.slow
@pytest.mark.parametrize("change", [lambda a: a.astype(">u4"), np.asfortranarray])
def test_the_byte_order_and_layout_of_numpy_do_not_matter(
    change: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]],
) -> None:
    values = np.arange(60, dtype=np.uint32).reshape(3, 20)
    assert digests.host_sums(change(values)) == _reference(values)
