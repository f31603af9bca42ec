from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from orbax_bench_core.config import ArraySpec
from orbax_bench_core.state.tree import tree_bytes


def test_replicas_count_once(make_mesh: Callable[..., Mesh]) -> None:
    sharding = NamedSharding(make_mesh(x=8), PartitionSpec())
    assert tree_bytes({"w": jax.device_put(np.zeros((3, 5), np.float32), sharding)}) == 60


def test_scalars_of_python_count_nothing() -> None:
    assert (
        tree_bytes({"step": 3, "name": "abc", "x": np.zeros(2, np.int16), "y": np.float64(1)}) == 12
    )


@pytest.mark.parametrize("dtype", ["int4", "bool", "bfloat16", "complex128"])
def test_agrees_with_the_size_of_the_spec(dtype: str) -> None:
    spec = ArraySpec(dtype=dtype, shape=(7, 3))
    assert tree_bytes(jnp.zeros((7, 3), jnp.dtype(dtype))) == spec.num_bytes
