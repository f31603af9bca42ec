"""State of a training job on storage: saves at some steps, and the latest that can be restored."""

from __future__ import annotations

import abc
import contextlib
from typing import TYPE_CHECKING, Any, Self

from orbax_bench_core.authoring import TestContext, VerificationError

if TYPE_CHECKING:
    from etils import epath

    from orbax_bench_core.benchmarks.training_job import TrainingJobOptions

PyTree = Any
_PERSISTENT_EVERY = 3


class JobState(abc.ABC):
    """Checkpoints of a job. A context manager: leaving it waits for what goes on."""

    @abc.abstractmethod
    def save(self, step: int, tree: PyTree) -> None:
        """Saves after a step; training goes on as soon as it may."""

    @abc.abstractmethod
    def restore(self) -> tuple[int, PyTree]:
        """Returns the latest committed step, and its state.

        Raises:
            VerificationError: There is none.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Waits for what goes on in the background, and ends it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def make_job_state(context: TestContext[TrainingJobOptions]) -> JobState:
    """Opens the checkpoints of a repeat, in the tier that its options name.

    Raises:
        UnmetNeed: The tier needs something that is missing.
    """
    return _Tiers(context) if context.options.tier == "local" else _Storage(context)


def wipe(context: TestContext[TrainingJobOptions]) -> None:
    """Empties the local disk of the last process; every process must call."""
    import jax

    from orbax_bench_core.benchmarks.support.options import await_all_hosts

    if jax.process_index() == jax.process_count() - 1:
        local = _local(context)
        if local.exists():
            local.rmtree()
    await_all_hosts("wiped")


class _Storage(JobState):
    """One tier: Orbax's `training.Checkpointer`."""

    def __init__(self, context: TestContext[TrainingJobOptions]) -> None:
        from orbax.checkpoint import v1 as ocp

        from orbax_bench_core.benchmarks.support.saving import load_target

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


class _Tiers(JobState):
    """Two tiers: Orbax's emergency `CheckpointManager`."""

    def __init__(self, context: TestContext[TrainingJobOptions]) -> None:
        import jax

        from orbax_bench_core.benchmarks.support import replicas
        from orbax_bench_core.benchmarks.support.local_checkpointing import (
            hosts_in_step,
            require_two_tiers,
        )
        from orbax_bench_core.benchmarks.support.needs import require_orbax_module
        from orbax_bench_core.benchmarks.support.options import await_all_hosts
        from orbax_bench_core.benchmarks.support.v0 import restore_target

        options, name = context.options, "training_job with tier: local"
        emergency = require_orbax_module("experimental.emergency.checkpoint_manager", name)
        require_two_tiers(context, 0, name)
        self._until_closed = contextlib.ExitStack()
        flags = {replicas.MESH_FLAG: True, replicas.PROCESS_ID_FLAG: True}
        self._until_closed.enter_context(replicas.orbax_flags(**flags))
        if context.drill is None:  # this process goes on with other repeats
            self._until_closed.enter_context(hosts_in_step())
        replicas.initialize()
        self._target = restore_target(context.pytree)
        local, persistent = _local(context), context.path / "persistent"
        local.mkdir(parents=True, exist_ok=True)
        if jax.process_index() == 0:
            persistent.mkdir(parents=True, exist_ok=True)
        await_all_hosts("tiers")
        every = options.save_interval_steps
        self._manager = emergency.CheckpointManager(
            local_directory=local,
            persistent_directory=persistent,
            global_mesh=context.mesh,
            abstract_state=self._target,
            options=emergency.CheckpointManagerOptions(
                local=emergency.LocalCheckpointOptions(
                    save_interval_steps=every, max_to_keep=options.max_to_keep
                ),
                persistent=emergency.PersistentCheckpointOptions(
                    save_interval_steps=_PERSISTENT_EVERY * every,
                    max_to_keep=options.max_to_keep,
                ),
                replica_axis_index=0,
            ),
        )

    def save(self, step: int, tree: PyTree) -> None:
        import orbax.checkpoint as ocp

        self._manager.save(step, args=ocp.args.Composite(state=ocp.args.PyTreeSave(tree)))

    def restore(self) -> tuple[int, PyTree]:
        import orbax.checkpoint as ocp

        step = self._manager.latest_step()
        if step is None:
            raise _nothing()
        arguments = ocp.checkpoint_utils.construct_restore_args(self._target)
        restored = self._manager.restore(
            step, args=ocp.args.Composite(state=ocp.args.PyTreeRestore(restore_args=arguments))
        )
        return step, restored["state"]

    def close(self) -> None:
        with self._until_closed:
            self._manager.close()


def _local(context: TestContext[TrainingJobOptions]) -> epath.Path:
    """Returns the directory on the local disk of this process."""
    import jax

    from orbax_bench_core.state import absolute

    host = f"process_{jax.process_index()}"
    return absolute(str(context.local_path or context.path / "local")) / host


def _nothing() -> VerificationError:
    return VerificationError("there is no committed checkpoint to go on from")
