"""Models and functions that tests name as `nnx_models:...`."""

import jax
import jax.numpy as jnp
from flax import nnx


class Block(nnx.Module):
    def __init__(self, kernel):
        self.kernel = nnx.Param(kernel, out_sharding=("fsdp", "elsewhere"))

    def __call__(self, x):
        return x + x @ self.kernel[...]


class Many(nnx.Module):
    """More blocks than ten, whose numbers sort otherwise as text; a random key; statistics."""

    def __init__(self, rngs):
        # Draws that compile in no time: eleven of JAX's own take seconds.
        word = jax.random.key_data(rngs.params())[-1].astype(jnp.float32) / 2.0**32
        kernels = (jnp.arange(11 * 256, dtype=jnp.float32) * word % 1 - 0.5).reshape(11, 16, 16)
        self.blocks = nnx.List([Block(kernel) for kernel in kernels])
        self.mean = nnx.BatchStat(jnp.ones(16))
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return self.dropout(x - self.mean[...], deterministic=False)


class Uneven(nnx.Module):
    def __init__(self, rngs):
        kernel = nnx.with_partitioning(nnx.initializers.lecun_normal(), ("fsdp", None))
        self.linear = nnx.Linear(6, 4, kernel_init=kernel, rngs=rngs)


NOT_CALLABLE = 3


def not_a_model(rngs):
    return {"rngs": rngs}


def failing(rngs):
    raise RuntimeError("no weights today")


def inputs():
    return (jnp.linspace(-1, 1, 32, dtype=jnp.float32).reshape(2, 16),)
