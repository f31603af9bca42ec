"""The state of an optimizer has the leaves of optax's own."""

import math

import jax
import jax.numpy as jnp
import pytest

from orbax_bench_core.config.checkpoint import CheckpointConfig, leaves
from orbax_bench_core.config.models import expanded
from orbax_bench_core.state import named_leaves

optax = pytest.importorskip("optax")
train_state = pytest.importorskip("flax.training.train_state")


def schedule(_):
    return 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "transformation"),
    [
        ("adamw", optax.adamw(schedule)),
        ("sgd", optax.sgd(schedule, momentum=0.9)),
    ],
)
def test_leaves_and_shapes_are_those_that_flax_and_optax_make(name, transformation):
    checkpoint = expanded(CheckpointConfig(model="gpt2", scale=0.1, optimizer=name), None)
    found = {".".join(path): leaf for path, leaf in leaves(checkpoint.spec)}
    params = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
        dict(checkpoint.spec["params"]),
        is_leaf=lambda node: hasattr(node, "dtype"),
    )
    state = train_state.TrainState.create(apply_fn=None, params=params, tx=transformation)
    state = state.replace(step=jnp.int32(0))
    made = {path: (leaf.shape, leaf.dtype.name) for path, leaf in named_leaves(state)}
    assert {name: (leaf.shape, leaf.dtype) for name, leaf in found.items()} == made


@pytest.mark.parametrize(("name", "copies"), [("none", 1), ("sgd", 2), ("adamw", 3)])
def test_an_optimizer_keeps_copies_of_the_parameters(name, copies):
    def elements(optimizer):
        spec = expanded(CheckpointConfig(model="llama-8b", optimizer=optimizer), None).spec
        return sum(math.prod(leaf.shape) for _, leaf in leaves(spec) if leaf.shape)

    assert elements(name) == copies * elements("none")
