"""Target of a load: the form of what was saved."""

import jax.numpy as jnp

from orbax_bench_core.benchmarks.support.saving import load_target


def test_an_array_that_is_gone_keeps_its_form():
    array = jnp.zeros(3)
    target = load_target([array])
    array.delete()
    assert target[0].shape == (3,)
