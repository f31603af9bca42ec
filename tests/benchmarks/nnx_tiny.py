"""A small model that tests name as `nnx_tiny:...`."""

import jax.numpy as jnp
from flax import nnx


class Tiny(nnx.Module):
    def __init__(self, rngs):
        self.kernel = nnx.Param(
            jnp.arange(256, dtype=jnp.float32).reshape(16, 16) / 256, out_sharding=("fsdp", None)
        )

    def __call__(self, x):
        return jnp.tanh(x @ self.kernel[...])


def inputs():
    return (jnp.linspace(-1, 1, 32, dtype=jnp.float32).reshape(2, 16),)
