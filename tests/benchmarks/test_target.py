"""Target of a load: the form of what was saved."""

import jax
import jax.numpy as jnp
import pytest

from orbax_bench_core.benchmarks.support.saving import load_target


@pytest.mark.slow
def test_an_array_keeps_shape_dtype_and_sharding():
    mesh = jax.make_mesh((8,), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    array = jax.device_put(jnp.zeros((8, 3), jnp.bfloat16), sharding)
    target = load_target({"w": array})["w"]
    assert (target.shape, target.dtype, target.sharding) == ((8, 3), jnp.bfloat16, sharding)


def test_an_array_that_is_gone_keeps_its_form():
    array = jnp.zeros(3)
    target = load_target([array])
    array.delete()
    assert target[0].shape == (3,)


def test_a_scalar_becomes_its_type():
    assert load_target({"step": 3, "name": "x"}) == {"step": int, "name": str}
