"""A loop with flax and optax on eight simulated devices. It knows nothing of a recorder.

`flax_loop.py FOLDER [FAULTS]`: the faults are planted into Orbax or into the loop, as they happen.
"""

import multiprocessing
import os
import signal
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

SAVES, INTERVAL = 12, 5


def load_data(queue):
    """A data loader, which imports Orbax as the module of a job does."""
    import orbax.checkpoint

    queue.put(orbax.checkpoint.__version__)


def plant(faults):
    """Makes saves of Orbax fail or slow as the faults say."""
    from orbax.checkpoint._src.checkpointers import async_checkpointer

    commit = async_checkpointer._on_commit_callback
    seen = iter(range(10**6))
    kept = []

    def faulty(*args, **kwargs):
        number = next(seen)
        if "full" in faults and number == 3:
            raise OSError(28, "No space left on device")
        if "stall" in faults and number == 7:
            time.sleep(6)
        if "leak" in faults:
            kept.append(b"x" * (1 << 20))
        if "kill" in faults and number == 10:
            os.kill(os.getpid(), signal.SIGKILL)
        return commit(*args, **kwargs)

    async_checkpointer._on_commit_callback = faulty


def main(folder, faults=""):
    import flax.linen as nn
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    import orbax.checkpoint as ocp
    from flax.training import train_state
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    assert jax.device_count() == 8, "XLA_FLAGS came too late"
    saves, interval = (230, 1) if "leak" in faults else (SAVES, INTERVAL)
    if faults:
        plant(faults)

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(8)(nn.relu(nn.Dense(64)(x)))

    mesh = Mesh(np.array(jax.devices()), ("data",))

    def placed(x):
        axes = ("data",) if getattr(x, "ndim", 0) and x.shape[0] % 8 == 0 else ()
        return jax.device_put(x, NamedSharding(mesh, PartitionSpec(*axes)))

    net = Net()
    params = net.init(jax.random.key(0), jnp.ones((8, 64)))
    state = train_state.TrainState.create(apply_fn=net.apply, params=params, tx=optax.adamw(1e-3))
    state = jax.tree.map(placed, state)
    x, y = placed(np.ones((64, 64), np.float32)), placed(np.ones((64, 8), np.float32))

    @jax.jit
    def train(state):
        def loss(params):
            return jnp.mean((state.apply_fn(params, x) - y) ** 2)

        return state.apply_gradients(grads=jax.grad(loss)(state.params))

    options = ocp.CheckpointManagerOptions(save_interval_steps=interval, max_to_keep=2)
    with ocp.CheckpointManager(folder, options=options) as manager:
        for step in range(saves * interval):
            state = jax.block_until_ready(train(state))
            try:
                saved = manager.save(step, args=ocp.args.StandardSave(state))
            except OSError as error:
                print(f"ignored: {error}")
                continue
            # An epoch is longer than a save here, as in most jobs.
            while saved and manager.is_saving_in_progress():
                time.sleep(0.005)
            if not faults:
                time.sleep(0.01)
        manager.wait_until_finished()
        manager.restore(manager.latest_step(), args=ocp.args.StandardRestore(state))
    print(f"trained {step + 1} steps")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        spawn = multiprocessing.get_context("spawn")
        queue = spawn.Queue()
        loader = spawn.Process(target=load_data, args=(queue,))
        loader.start()
        queue.get()
        loader.join()
    main(*sys.argv[1:])
