"""Saves a sharded Flax NNX model and restores it onto other numbers of devices.

The recipe: split the model, save its state (each device writes its own shards), restore onto the
mesh of the job that goes on, merge, and see that the model still says the same.

    python examples/nnx_sharded_save.py

The same model, measured: `orbax-bench run examples/nnx_sharded_save.yaml -o DIR`, which names
`build` and `inputs` of this file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from flax import nnx
from jax.sharding import Mesh, NamedSharding

WIDTH = 256
NUM_BLOCKS = 2


class Block(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        init = nnx.initializers.lecun_normal()
        columns = nnx.with_partitioning(init, (None, "fsdp"))
        rows = nnx.with_partitioning(init, ("fsdp", None))
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.up = nnx.Linear(WIDTH, 4 * WIDTH, kernel_init=columns, rngs=rngs)
        self.down = nnx.Linear(4 * WIDTH, WIDTH, kernel_init=rows, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return x + self.down(nnx.gelu(self.up(self.norm(x))))


class Model(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.blocks = nnx.List([Block(rngs=rngs) for _ in range(NUM_BLOCKS)])

    def __call__(self, x: jax.Array) -> jax.Array:
        for block in self.blocks:
            x = block(x)
        return x


def build(rngs: nnx.Rngs) -> Model:
    return Model(rngs=rngs)


def inputs() -> tuple[jax.Array, ...]:
    return (jnp.linspace(-1, 1, 8 * WIDTH, dtype=jnp.float32).reshape(8, WIDTH),)


def sharded(mesh: Mesh) -> Model:
    """Builds the model with every array born where the mesh wants it."""
    with jax.set_mesh(mesh):
        return nnx.jit(lambda: build(nnx.Rngs(0)))()


def save(path: Path, state: nnx.State) -> None:
    save_args = jax.tree.map(lambda _: ocp.SaveArgs(), state)
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
        checkpointer.save(path, state, save_args=save_args)


def restore(path: Path, state: nnx.State, mesh: Mesh) -> nnx.State:
    partitions = nnx.get_partition_spec(state)
    restore_args = jax.tree.map(
        lambda spec: ocp.ArrayRestoreArgs(sharding=NamedSharding(mesh, spec)), partitions
    )
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
        return checkpointer.restore(path, item=state, restore_args=restore_args)


def main() -> None:
    devices = np.array(jax.devices())
    model = sharded(Mesh(devices[:8], ("fsdp",)))
    graph, state = nnx.split(model)
    expected = model(*inputs())
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / "checkpoint", state)
        for count in (4, 16):
            mesh = Mesh(devices[:count], ("fsdp",))
            restored = nnx.merge(graph, restore(Path(folder) / "checkpoint", state, mesh))
            kernel = restored.blocks[0].up.kernel[...]
            difference = float(
                jnp.abs(np.asarray(restored(*inputs())) - np.asarray(expected)).max()
            )
            shard = kernel.sharding.shard_shape(kernel.shape)
            print(f"8 -> {count} devices: {shard} of {kernel.shape} on each, ", end="")
            print(f"outputs differ by at most {difference:.1e}")
            assert difference < 1e-4


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", 16)
    main()
