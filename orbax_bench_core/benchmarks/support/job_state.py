"""Checkpoints of a training job, in the tier that its options name."""

from __future__ import annotations

import abc
import contextlib
from typing import TYPE_CHECKING, Any

from orbax_bench_core.benchmarks.support import needs, replicas
from orbax_bench_core.benchmarks.support.options import await_all_hosts
from orbax_bench_core.benchmarks.support.saving import load_target, pytree_restore, restore_target
from orbax_bench_core.files import absolute, remove_tree
from orbax_bench_core.interface import TestContext, VerificationError

if TYPE_CHECKING:
    from etils import epath

    from orbax_bench_core.benchmarks.training_job import TrainingJobOptions

PyTree = Any
_PERSISTENT_EVERY = 3
_MOST_STEPS = 64
"""Steps of each process that are told to the others."""


def make_job_state(
    context: TestContext[TrainingJobOptions],
) -> contextlib.closing[_Storage | _LocalDisks]:
    """Opens the checkpoints of a repeat, in the tier that its options name."""
    kinds: dict[str, type[_Storage | _LocalDisks]] = {
        "storage": _Storage,
        "local": _Emergency,
        "replicator": _Replicator,
    }
    return contextlib.closing(kinds[str(context.options.tier)](context))


def wipe(context: TestContext[TrainingJobOptions]) -> None:
    """Empties the local disk of the last process; every process must call."""
    import jax

    if jax.process_index() == jax.process_count() - 1:
        local = _local(context)
        remove_tree(local, local.parent)
    await_all_hosts("wiped")


class _Storage:
    """One tier: Orbax's `training.Checkpointer`."""

    def __init__(self, context: TestContext[TrainingJobOptions]) -> None:
        from orbax.checkpoint import v1 as ocp

        options = context.options
        self._asynchronous = options.async_enabled
        self._target = load_target(context.pytree)
        training = ocp.training
        self._checkpointer = training.Checkpointer(
            context.path / "steps",
            save_decision_policy=training.save_decision_policies.FixedIntervalPolicy(
                options.save_interval_steps
            ),
            preservation_policy=training.preservation_policies.LatestN(options.max_to_keep),
        )

    def save(self, step: int, tree: PyTree) -> None:
        if self._asynchronous:
            self._checkpointer.save_async(step, tree)
        else:
            self._checkpointer.save(step, tree)

    def restore(self) -> tuple[int, PyTree]:
        latest = self._checkpointer.latest
        if latest is None:
            raise _nothing()
        return latest.step, self._checkpointer.load(latest.step, self._target)

    def close(self) -> None:
        self._checkpointer.close()


class _LocalDisks(abc.ABC):
    """Checkpoints on the local disk of each process, by a manager of Orbax made for that."""

    def __init__(self, context: TestContext[TrainingJobOptions]) -> None:
        name = f"training_job with tier: {context.options.tier}"
        needs.require_mesh(context, name)
        needs.require_processes(name)
        self._until_closed = contextlib.ExitStack()
        flags = {replicas.MESH_FLAG: True, replicas.PROCESS_ID_FLAG: True}
        self._until_closed.enter_context(replicas.orbax_flags(**flags))
        if context.drill is None:  # this process goes on with other repeats
            self._until_closed.enter_context(replicas.hosts_in_step())
        replicas.initialize()
        self._target = restore_target(context.pytree)
        local = _local(context)
        local.mkdir(parents=True, exist_ok=True)
        await_all_hosts("tiers")
        self._manager = self._open(context, local, name)

    @abc.abstractmethod
    def _open(self, context: TestContext[TrainingJobOptions], local: epath.Path, name: str) -> Any:
        """Opens the manager of a local directory; `name` is what asks for it."""

    def _latest(self) -> int | None:
        """Returns the latest step that all processes can go on from."""
        step = self._manager.latest_step()
        return None if step is None else int(step)  # managers give NumPy's numbers as well

    def save(self, step: int, tree: PyTree) -> None:
        import orbax.checkpoint as ocp

        self._manager.save(step, args=ocp.args.Composite(state=ocp.args.PyTreeSave(tree)))

    def restore(self) -> tuple[int, PyTree]:
        import orbax.checkpoint as ocp

        step = self._latest()
        if step is None:
            raise _nothing()
        arguments = ocp.args.Composite(state=pytree_restore(self._target))
        return step, self._manager.restore(step, args=arguments)["state"]

    def close(self) -> None:
        with self._until_closed:
            self._manager.close()


class _Emergency(_LocalDisks):
    """Two tiers: Orbax's emergency `CheckpointManager`, which writes to storage as well."""

    def _open(self, context: TestContext[TrainingJobOptions], local: epath.Path, name: str) -> Any:
        import jax

        emergency = needs.require_orbax_module("experimental.emergency.checkpoint_manager", name)
        needs.require_replicas(context, 0, name, of_processes=True)
        persistent, options = context.path / "persistent", context.options
        if jax.process_index() == 0:
            persistent.mkdir(parents=True, exist_ok=True)
        await_all_hosts("persistent tier")
        every = options.save_interval_steps
        return emergency.CheckpointManager(
            local_directory=local,
            persistent_directory=persistent,
            global_mesh=context.mesh,
            abstract_state=self._target,
            options=emergency.CheckpointManagerOptions(
                local=emergency.LocalCheckpointOptions(
                    save_interval_steps=every, max_to_keep=options.max_to_keep
                ),
                persistent=emergency.PersistentCheckpointOptions(
                    save_interval_steps=_PERSISTENT_EVERY * every, max_to_keep=options.max_to_keep
                ),
                replica_axis_index=0,
            ),
        )


class _Replicator(_LocalDisks):
    """Orbax's multi-tier `ReplicatorCheckpointManager`, without the service that replicates.

    That service, of the platform, copies local disks to storage and to machines that were replaced.
    """

    def _open(self, context: TestContext[TrainingJobOptions], local: epath.Path, name: str) -> Any:
        module = "experimental.emergency.replicator_checkpoint_manager"
        replicator = needs.require_orbax_module(module, name)
        policies = needs.require_orbax_module("checkpoint_managers", name)
        return replicator.ReplicatorCheckpointManager(
            local,
            replicator.ReplicatorCheckpointManagerOptions(
                save_interval_steps=context.options.save_interval_steps,
                preservation_policy=policies.LatestN(context.options.max_to_keep),
            ),
            global_mesh=context.mesh,
        )

    def _latest(self) -> int | None:
        """Returns the latest step that every process has: a kill may come while some commit."""
        import numpy as np
        from jax.experimental import multihost_utils

        own = sorted(map(int, self._manager.all_steps(read=True)), reverse=True)
        padded = np.full(_MOST_STEPS, -1, np.int32)
        padded[: len(own)] = own[:_MOST_STEPS]
        first, *others = multihost_utils.process_allgather(padded).reshape(-1, _MOST_STEPS)
        common = set(first.tolist()).intersection(*(steps.tolist() for steps in others)) - {-1}
        return max(common, default=None)


def _local(context: TestContext[TrainingJobOptions]) -> epath.Path:
    import jax

    host = f"process_{jax.process_index()}"
    return absolute(str(context.local_path or context.path / "local")) / host


def _nothing() -> VerificationError:
    return VerificationError("there is no committed checkpoint to go on from")
