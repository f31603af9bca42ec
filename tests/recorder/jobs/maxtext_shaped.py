"""A loop as MaxText has it: `maxtext_shaped.py FOLDER STEPS`, which goes on where it was.

Each step is offered to the manager; an item is the state, another one the iterator of the data,
whose handler is not one of Orbax, as that of Grain. The hooks for emergencies are off.
"""

import dataclasses
import json
import os
import sys
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from etils import epath
from jax.sharding import Mesh, NamedSharding, PartitionSpec


class Batches:
    """An iterator of batches that knows where it is."""

    def __init__(self):
        self.position = 0

    def __next__(self):
        self.position += 1
        return jnp.full((16, 64), self.position, jnp.float32)

    def get_state(self):
        return {"position": self.position}

    def set_state(self, state):
        self.position = state["position"]


class IteratorHandler(ocp.CheckpointHandler):
    """Saves an iterator of each process, in the call."""

    def _file(self, directory):
        return directory / f"process_{jax.process_index()}-of-{jax.process_count()}.json"

    def save(self, directory: epath.Path, args: Any):
        self._file(directory).write_text(json.dumps(args.item.get_state()))

    def restore(self, directory: epath.Path, args: Any):
        args.item.set_state(json.loads(self._file(directory).read_text()))
        return args.item


@ocp.args.register_with_handler(IteratorHandler, for_save=True)
@dataclasses.dataclass
class IteratorSave(ocp.args.CheckpointArgs):
    item: Any


@ocp.args.register_with_handler(IteratorHandler, for_restore=True)
@dataclasses.dataclass
class IteratorRestore(ocp.args.CheckpointArgs):
    item: Any


def make_state(mesh):
    def placed(shape, *axes):
        return jax.device_put(jnp.ones(shape), NamedSharding(mesh, PartitionSpec(*axes)))

    params = {
        "decoder": {
            "layers": {
                "mlp": {"wi": placed((2, 64, 128), None, "fsdp", "tensor")},
                "norm": {"scale": placed((2, 64), None, "fsdp")},
            }
        },
        "token_embedder": {"embedding": placed((256, 64), "tensor", "fsdp")},
    }
    moments = {name: jax.tree.map(jnp.zeros_like, params) for name in ("mu", "nu")}
    step = jax.device_put(jnp.zeros((), jnp.int32), NamedSharding(mesh, PartitionSpec()))
    return {"step": step, "params": params, "opt_state": moments}


@jax.jit
def train_step(state, batch):
    rate = 1e-3 * jnp.mean(batch)
    params = jax.tree.map(lambda leaf: leaf * (1 - rate), state["params"])
    return {**state, "step": state["step"] + 1, "params": params}


def save_checkpoint(manager, step, state, batches):
    args = ocp.args.Composite(
        items=ocp.args.PyTreeSave(
            item=state,
            save_args=jax.tree.map(lambda _: ocp.SaveArgs(chunk_byte_size=2**20), state),
            ocdbt_target_data_file_size=2**20,
        ),
        iter=IteratorSave(item=batches),
    )
    return manager.save(step, args=args)


def load_state_if_possible(manager, state, batches):
    if (step := manager.latest_step()) is None:
        return 0, state
    restore_args = ocp.checkpoint_utils.construct_restore_args(state)
    args = ocp.args.Composite(
        items=ocp.args.PyTreeRestore(item=state, restore_args=restore_args),
        iter=IteratorRestore(item=batches),
    )
    return step + 1, manager.restore(step, args=args)["items"]


def main(folder, steps):
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("fsdp", "tensor"))
    manager = ocp.CheckpointManager(
        epath.Path(folder),
        item_names=("items", "iter"),
        options=ocp.CheckpointManagerOptions(
            create=True, save_interval_steps=5, enable_async_checkpointing=True
        ),
    )
    batches = Batches()
    first, state = load_state_if_possible(manager, make_state(mesh), batches)
    for step in range(first, first + int(steps)):
        state = train_step(state, next(batches))
        if step % 5 == 0:
            jax.block_until_ready(state)
        if save_checkpoint(manager, step, state, batches):
            print(f"saved a checkpoint at step {step}")
        assert batches.position == step + 1
    manager.wait_until_finished()


if __name__ == "__main__":
    main(*sys.argv[1:])
