"""The dtypes that a spec may name."""

import jax.numpy as jnp
import pytest

from orbax_bench_core.config import canonical


@pytest.mark.parametrize(
    "alias",
    ["bool_", "int_", "uint", "float_", "single", "double", "complex_", "csingle", "cdouble"],
)
def test_an_alias_means_what_jax_means(alias):
    assert jnp.dtype(canonical(alias)) == jnp.dtype(getattr(jnp, alias))
