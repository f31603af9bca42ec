"""The dtypes that a spec may name."""

import jax.numpy as jnp
import pytest

from orbax_bench_core.config import dtypes


@pytest.mark.parametrize("name", [name for name in dtypes.BITS if hasattr(jnp, name)])
def test_the_size_is_that_of_jax(name):
    assert dtypes.BITS[name] == 8 * jnp.dtype(getattr(jnp, name)).itemsize


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int4", "float8_e4m3fn", "bool"])
def test_a_name_of_jax_is_its_own(name):
    assert dtypes.canonical(name) == name


@pytest.mark.parametrize(
    "alias",
    ["bool_", "int_", "uint", "float_", "single", "double", "complex_", "csingle", "cdouble"],
)
def test_an_alias_means_what_jax_means(alias):
    assert jnp.dtype(dtypes.canonical(alias)) == jnp.dtype(getattr(jnp, alias))


@pytest.mark.parametrize("name", ["float33", "", "Float32", "object", "float"])
def test_an_unknown_name_is_none(name):
    assert dtypes.canonical(name) is None
