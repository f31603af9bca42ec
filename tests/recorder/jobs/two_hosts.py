"""One of two processes that train together.

`two_hosts.py INDEX ADDRESS FOLDER [slow]`: with `slow` the second writes its arrays late.
"""

import os
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax

INDEX, ADDRESS, FOLDER, *FAULT = sys.argv[1:]
jax.config.update("jax_cpu_collectives_implementation", "gloo")

import orbax.checkpoint as ocp

jax.distributed.initialize(ADDRESS, 2, int(INDEX))

import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

if FAULT and INDEX == "1":
    from orbax.checkpoint._src.serialization import jax_array_handlers

    log = jax_array_handlers._log_io_metrics

    def late(*args, **kwargs):
        time.sleep(1)
        return log(*args, **kwargs)

    jax_array_handlers._log_io_metrics = late

mesh = Mesh(np.array(jax.devices()), ("fsdp",))
sharding = NamedSharding(mesh, PartitionSpec("fsdp"))


def made(index):
    return np.ones((4096,), np.float32)[index]


state = {f"w{n}": jax.make_array_from_callback((4096,), sharding, made) for n in range(4)}
train = jax.jit(lambda state: jax.tree.map(lambda leaf: leaf * 0.999, state))
options = ocp.CheckpointManagerOptions(save_interval_steps=5, max_to_keep=2)
with ocp.CheckpointManager(FOLDER, options=options) as manager:
    for step in range(50):
        state = jax.block_until_ready(train(state))
        time.sleep(0.01)
        manager.save(step, args=ocp.args.StandardSave(state))
        if step % 5 == 3:
            manager.wait_until_finished()
    manager.restore(45, args=ocp.args.StandardRestore(state))
