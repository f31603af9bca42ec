"""One of two replicas with Orbax's emergency manager: `emergency.py INDEX ADDRESS FOLDER`.

Each saves every step to a folder of its own, and every second one to a folder that both share.
"""

import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax

INDEX, ADDRESS, FOLDER = sys.argv[1:]
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(ADDRESS, 2, int(INDEX))

import numpy as np
import orbax.checkpoint as ocp
from absl import flags
from etils import epath
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from orbax.checkpoint import multihost
from orbax.checkpoint.experimental.emergency import checkpoint_manager as emergency

# What Orbax asks of a job that uses this manager.
flags.FLAGS.mark_as_parsed()
multihost.initialize_runtime_to_distributed_ids()
multihost.initialize_distributed_to_device_ids()

local, shared = epath.Path(FOLDER) / f"local_{INDEX}", epath.Path(FOLDER) / "shared"
for folder in (local, shared):
    folder.mkdir(parents=True, exist_ok=True)
mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("replica", "data"))
sharding = NamedSharding(mesh, PartitionSpec("data"))
state = {
    "w": jax.make_array_from_callback(
        (4096,), sharding, lambda index: np.ones((4096,), np.float32)[index]
    )
}
options = emergency.CheckpointManagerOptions(
    local=emergency.LocalCheckpointOptions(save_interval_steps=1, max_to_keep=2),
    persistent=emergency.PersistentCheckpointOptions(save_interval_steps=2, max_to_keep=2),
    replica_axis_index=0,
)
abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
with emergency.CheckpointManager(
    local, shared, global_mesh=mesh, abstract_state=abstract, options=options
) as manager:
    for step in range(5):
        manager.save(step, args=ocp.args.Composite(state=ocp.args.PyTreeSave(state)))
    manager.wait_until_finished()
    wanted = ocp.args.Composite(state=ocp.args.PyTreeRestore(abstract))
    manager.restore(manager.latest_step(), args=wanted)
