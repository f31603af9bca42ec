"""Managers of Orbax that save to local disks often, and to persistent storage at times."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

from orbax_bench_core.benchmarks.support import needs, replicas, saving
from orbax_bench_core.benchmarks.support.options import BoundedOptions, await_all_hosts
from orbax_bench_core.files import absolute, remove_tree
from orbax_bench_core.interface import (
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    UnmetNeed,
    VerificationError,
    benchmark_options,
)
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    from etils import epath


_EMERGENCY = "emergency_checkpoint_manager"
_MODULE = "experimental.emergency.checkpoint_manager"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LocalCheckpointingOptions(BoundedOptions):
    """Options of a benchmark that saves to local disks and to persistent storage.

    Attributes:
        persistent_save_interval_steps: Save to persistent storage every so many steps.
        persistent_max_to_keep: How many of its latest checkpoints to keep.
        local_save_interval_steps: Save to the local disks every so many steps.
        local_max_to_keep: How many of their latest checkpoints to keep.
        replica_axis_index: Index of the mesh axis along which replicas lie.
        train_steps: How many steps to offer to the manager.
    """

    persistent_save_interval_steps: Sweepable[int] = 5
    persistent_max_to_keep: Sweepable[int] = 5
    local_save_interval_steps: Sweepable[int] = 2
    local_max_to_keep: Sweepable[int] = 2
    replica_axis_index: Sweepable[int] = 0
    train_steps: Sweepable[int] = 10

    least = {
        "persistent_save_interval_steps": 1,
        "persistent_max_to_keep": 1,
        "local_save_interval_steps": 1,
        "local_max_to_keep": 1,
        "train_steps": 1,
    }

    def tiers(self, kinds: Any) -> dict[str, Any]:
        """Returns these options as fields of the options of a manager of Orbax."""
        return {
            "local": kinds.LocalCheckpointOptions(
                save_interval_steps=self.local_save_interval_steps,
                max_to_keep=self.local_max_to_keep,
            ),
            "persistent": kinds.PersistentCheckpointOptions(
                save_interval_steps=self.persistent_save_interval_steps,
                max_to_keep=self.persistent_max_to_keep,
            ),
            "replica_axis_index": self.replica_axis_index,
        }


def make_directories(context: TestContext, name: str) -> tuple[epath.Path, epath.Path]:
    """Makes an empty directory of this host and one of all hosts; every process must call."""
    import jax

    host = f"process_{jax.process_index()}"
    # Orbax wants paths in full, and a --local-directory may be relative.
    local = absolute(str(context.local_path or context.path / "local")) / name / host
    persistent = context.path / "persistent" / name
    remove_tree(local, local.parent.parent)  # what a repeat that failed had left
    local.mkdir(parents=True)
    if jax.process_index() == 0:
        persistent.mkdir(parents=True)
    await_all_hosts(f"directories of {name}")
    return local, persistent


def open_two_tier_manager(
    metrics: Metrics,
    context: TestContext,
    kind: Any,
    directories: tuple[epath.Path, epath.Path],
    options: Any,
) -> contextlib.closing[Any]:
    """Opens a manager of two tiers, to be closed whatever happens; measures how long that takes.

    Args:
        metrics: Takes the samples of `create_checkpoint_manager`.
        context: The repeat.
        kind: The class of the manager.
        directories: The local folder, and the one on shared storage.
        options: Options of the manager.
    """
    with metrics.measure("create_checkpoint_manager"):
        manager = kind(
            local_directory=directories[0],
            persistent_directory=directories[1],
            global_mesh=context.mesh,
            abstract_state=saving.restore_target(context.pytree),
            options=options,
        )
    return contextlib.closing(manager)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmergencyCheckpointManagerOptions(LocalCheckpointingOptions):
    """Options of `emergency_checkpoint_manager`.

    Attributes:
        single_host_load_and_broadcast: Have one host list the persistent checkpoints and tell the
            others.
        experimental_use_distributed_id_for_mesh_consistency: After a restart, find each device by
            the process that holds it rather than by its place in the list of devices.
        experimental_orbax_use_distributed_process_id: Tell processes apart by the id that
            jax.distributed gave them rather than by JAX's own index.
    """

    single_host_load_and_broadcast: Sweepable[bool] = True
    experimental_use_distributed_id_for_mesh_consistency: Sweepable[bool] = True
    experimental_orbax_use_distributed_process_id: Sweepable[bool] = True

    @property
    def flags(self) -> dict[str, bool]:
        """Orbax's command-line flags, by name."""
        return {
            replicas.MESH_FLAG: self.experimental_use_distributed_id_for_mesh_consistency,
            replicas.PROCESS_ID_FLAG: self.experimental_orbax_use_distributed_process_id,
        }

    def manager_options(self) -> Any:
        """Returns these options as Orbax takes them."""
        emergency = needs.require_orbax_module(_MODULE, _EMERGENCY)
        return emergency.CheckpointManagerOptions(
            **self.tiers(emergency),
            single_host_load_and_broadcast=self.single_host_load_and_broadcast,
        )


@benchmark_options(EmergencyCheckpointManagerOptions)
class EmergencyCheckpointManager(BenchmarksGenerator[EmergencyCheckpointManagerOptions]):
    """Measures each step that Orbax's emergency `CheckpointManager` saves, and its restores.

    It needs two or more replicas, and two or more processes. A saved step gives `save_blocking`,
    `save_background` and `save`, another one `skip`. Every step on the local disks is followed by
    `reload` and `restore`. At last the manager is closed and made again, as after a restart:
    `create_checkpoint_manager` and one more `restore`. What was restored is verified outside the
    clock, on every replica.
    """

    def test_fn(self, context: TestContext[EmergencyCheckpointManagerOptions]) -> TestResult:
        """Offers every step to the manager, restoring as it goes, and restarts it."""
        import orbax.checkpoint as ocp

        metrics, options = Metrics(), context.options
        axis = options.replica_axis_index
        _, tree = needs.require_replicas(context, axis, _EMERGENCY, of_processes=True)
        with replicas.orbax_flags(**options.flags), replicas.hosts_in_step():
            replicas.initialize()
            directories = make_directories(context, "steps")
            kind = needs.require_orbax_module(_MODULE, _EMERGENCY).CheckpointManager

            def arguments(state: Any) -> Any:
                return ocp.args.Composite(state=ocp.args.PyTreeSave(state))

            def opened() -> contextlib.closing[Any]:
                return open_two_tier_manager(
                    metrics, context, kind, directories, options.manager_options()
                )

            with opened() as manager:
                for step in range(options.train_steps):
                    saving.measure_step(metrics, context, manager, step, tree, arguments)
                    if step % options.local_save_interval_steps == 0:
                        _restore_emergency(metrics, context, manager, step)
            with opened() as manager:
                _restore_emergency(metrics, context, manager, manager.latest_step())
        return TestResult(metrics=metrics)


def _restore_emergency(metrics: Metrics, context: TestContext, manager: Any, step: int) -> None:
    import jax
    import orbax.checkpoint as ocp

    from orbax_bench_core.state import tree_bytes

    target = saving.restore_target(context.pytree)
    arguments = ocp.args.Composite(state=saving.pytree_restore(target))
    await_all_hosts(f"saved {step}")
    with metrics.measure("reload"):
        manager.reload()
    context.prepare_load("restore", context.path)
    with metrics.measure("restore", num_bytes=tree_bytes(context.pytree)):
        restored = jax.block_until_ready(manager.restore(step, args=arguments)["state"])
    replicas.verify_replicas(context, restored)


_P2P = "p2p_checkpoint_manager"
_PACKAGE = "experimental.emergency.p2p"
_SOURCES = ("local", "peer", "persistent")


@dataclasses.dataclass(frozen=True, kw_only=True)
class P2pCheckpointManagerOptions(LocalCheckpointingOptions):
    """Options of `p2p_checkpoint_manager`."""

    def manager_options(self) -> Any:
        """Returns these options as Orbax takes them."""
        kinds = needs.require_orbax_module(f"{_PACKAGE}.options", _P2P)
        return kinds.CheckpointManagerOptions(**self.tiers(kinds))


@benchmark_options(P2pCheckpointManagerOptions)
class P2pCheckpointManager(BenchmarksGenerator[P2pCheckpointManagerOptions]):
    """Measures each step that Orbax's peer-to-peer `CheckpointManager` saves, and three restores.

    It needs two or more replicas, and two or more processes. A saved step gives `save_blocking`,
    `save_background` and `save`, another one `skip`. The steps are saved three times over. The
    first time each one on the local disks is restored from there; the second time the first process
    has lost it, and asks a peer; the third time all have lost it, and only those in persistent
    storage can be restored: `restore_from_local`, `restore_from_peer` and
    `restore_from_persistent`. What was restored is verified outside the clock, on every replica,
    and so is where it came from.
    """

    def test_fn(self, context: TestContext[P2pCheckpointManagerOptions]) -> TestResult:
        """Saves and restores in three ways."""
        metrics, options = Metrics(), context.options
        needs.require_replicas(context, options.replica_axis_index, _P2P, of_processes=True)
        _check_steps(options)
        replicas.initialize()
        with replicas.hosts_in_step():
            for source in _SOURCES:
                _train(metrics, context, options, source)
        return TestResult(metrics=metrics)


def _train(
    metrics: Metrics, context: TestContext, options: P2pCheckpointManagerOptions, source: str
) -> None:
    import orbax.checkpoint as ocp

    composite = needs.require_orbax_module(f"{_PACKAGE}.args", _P2P).Composite
    directories = make_directories(context, source)
    kind = needs.require_orbax_module(f"{_PACKAGE}.checkpoint_manager", _P2P).CheckpointManager

    def arguments(state: Any) -> Any:
        return composite(state=ocp.args.PyTreeSave(state))

    with open_two_tier_manager(
        metrics, context, kind, directories, options.manager_options()
    ) as manager:
        for step in range(options.train_steps):
            saving.measure_step(metrics, context, manager, step, context.pytree, arguments)
            if _is_restored(options, source, step):
                _lose(manager, directories[0] / str(step), source)
                _restore(metrics, context, manager, composite, source, step)


def _check_steps(options: P2pCheckpointManagerOptions) -> None:
    for source in _SOURCES:
        if not any(_is_restored(options, source, step) for step in range(options.train_steps)):
            raise UnmetNeed(
                f"{_P2P} needs a step after the first to restore from {source}: with train_steps "
                f"{options.train_steps} none is a multiple of local_save_interval_steps "
                f"{options.local_save_interval_steps} or, for persistent storage, of "
                f"persistent_save_interval_steps {options.persistent_save_interval_steps}"
            )


def _is_restored(options: P2pCheckpointManagerOptions, source: str, step: int) -> bool:
    interval = (
        options.persistent_save_interval_steps
        if source == "persistent"
        else options.local_save_interval_steps
    )
    return step % interval == 0 and step > 0


def _lose(manager: Any, directory: epath.Path, source: str) -> None:
    """Removes a local checkpoint where the restore is to come from elsewhere."""
    import jax

    loses = {"local": False, "peer": jax.process_index() == 0, "persistent": True}[source]
    if loses and directory.exists():
        directory.rmtree()
        manager.reload()
    await_all_hosts(f"lost {directory.name}")


def _restore(
    metrics: Metrics, context: TestContext, manager: Any, composite: Any, source: str, step: int
) -> None:
    import jax

    from orbax_bench_core.state import tree_bytes

    target, operation = saving.restore_target(context.pytree), f"restore_from_{source}"
    arguments = composite(state=saving.pytree_restore(target, item=target))
    asked = _note_persistent_restores(manager)
    context.prepare_load(operation, context.path)
    with metrics.measure(operation, num_bytes=tree_bytes(context.pytree)):
        restored = jax.block_until_ready(manager.restore(step, args=arguments)["state"])
    # The manager turns to persistent storage by itself when another way fails.
    if (source == "persistent") != bool(asked):
        raise VerificationError(
            f"step {step} was to be restored from {source} and came from "
            f"{'persistent storage' if asked else 'elsewhere'}"
        )
    replicas.verify_replicas(context, restored)
    with metrics.measure("reload"):
        manager.reload()


def _note_persistent_restores(manager: Any) -> list[int]:
    """Returns a list that gets every step that this manager restores from persistent storage."""
    asked: list[int] = []
    persistent = manager._persistent_manager  # noqa: SLF001 - the manager only logs its source
    restore = type(persistent).restore

    def noted(step: int, *arguments: Any, **named: Any) -> Any:
        asked.append(step)
        return restore(persistent, step, *arguments, **named)

    persistent.restore = noted
    return asked
