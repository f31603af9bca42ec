"""A loop with the training.Checkpointer of Orbax v1, as MaxText has it: it offers each step.

`v1_loop.py FOLDER [RECORDING]`: with a recording, it is recorded by one line.
"""

import os
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

if len(sys.argv) > 2:
    import orbax_bench_core

    recorder = orbax_bench_core.record(sys.argv[2])

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from orbax.checkpoint.experimental import v1 as ocp

FOLDER = sys.argv[1]
SAVES, INTERVAL = 6, 4
mesh = Mesh(np.array(jax.devices()), ("fsdp",))
sharding = NamedSharding(mesh, PartitionSpec("fsdp"))
state = {f"w{n}": jax.device_put(np.ones((64, 64), np.float32), sharding) for n in range(4)}
train = jax.jit(lambda state: jax.tree.map(lambda leaf: leaf * 0.999, state))
every = ocp.training.save_decision_policies.FixedIntervalPolicy(INTERVAL)
with ocp.training.Checkpointer(FOLDER, save_decision_policy=every) as checkpointer:
    for step in range(SAVES * INTERVAL):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            state = jax.block_until_ready(train(state))
            time.sleep(0.01)
        if step < INTERVAL * SAVES // 2:
            checkpointer.save_checkpointables(step, {"state": state, "data": {"step": step}})
        else:
            response = checkpointer.save_checkpointables_async(step, {"state": state})
            while response is not None and not response._thread_runner.done():
                time.sleep(0.005)
    checkpointer.load_checkpointables(0, {"state": state})
ocp.save(f"{FOLDER}_free", state)
ocp.load(f"{FOLDER}_free", state)
if len(sys.argv) > 2:
    recorder.close()
    print(recorder.summary())
