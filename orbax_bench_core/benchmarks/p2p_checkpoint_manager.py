"""Orbax's peer-to-peer `CheckpointManager`: local disk, another host, or persistent storage."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    TestContext,
    TestResult,
    UnmetNeed,
    VerificationError,
    benchmark_options,
)
from orbax_bench_core.benchmarks.support import replicas
from orbax_bench_core.benchmarks.support.local_checkpointing import (
    LocalCheckpointingOptions,
    hosts_in_step,
    make_directories,
    open_two_tier_manager,
    require_two_tiers,
)
from orbax_bench_core.benchmarks.support.needs import require_orbax_module
from orbax_bench_core.benchmarks.support.options import await_all_hosts
from orbax_bench_core.benchmarks.support.replicas import verify_replicas
from orbax_bench_core.benchmarks.support.v0 import measure_step, restore_target
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    from etils import epath

_NAME = "p2p_checkpoint_manager"
_PACKAGE = "experimental.emergency.p2p"
_SOURCES = ("local", "peer", "persistent")


@dataclasses.dataclass(frozen=True, kw_only=True)
class P2pCheckpointManagerOptions(LocalCheckpointingOptions):
    """Options of `p2p_checkpoint_manager`."""

    def manager_options(self) -> Any:
        """Returns these options as Orbax takes them."""
        kinds = require_orbax_module(f"{_PACKAGE}.options", _NAME)
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
        require_two_tiers(context, options.replica_axis_index, _NAME)
        _check_steps(options)
        replicas.initialize()
        with hosts_in_step():
            for source in _SOURCES:
                _train(metrics, context, options, source)
        return TestResult(metrics=metrics)


def _train(
    metrics: Metrics, context: TestContext, options: P2pCheckpointManagerOptions, source: str
) -> None:
    import orbax.checkpoint as ocp

    composite = require_orbax_module(f"{_PACKAGE}.args", _NAME).Composite
    directories = make_directories(context, source)
    kind = require_orbax_module(f"{_PACKAGE}.checkpoint_manager", _NAME).CheckpointManager
    with open_two_tier_manager(
        metrics, context, kind, directories, options.manager_options()
    ) as manager:
        for step in range(options.train_steps):
            measure_step(
                metrics,
                context,
                manager,
                step,
                tree=context.pytree,
                arguments=composite(state=ocp.args.PyTreeSave(context.pytree)),
                directory=context.path,
            )
            if _is_restored(options, source, step):
                _lose(manager, directories[0] / str(step), source)
                _restore(metrics, context, manager, composite, source, step)


def _check_steps(options: P2pCheckpointManagerOptions) -> None:
    for source in _SOURCES:
        if not any(_is_restored(options, source, step) for step in range(options.train_steps)):
            raise UnmetNeed(
                f"{_NAME} needs a step after the first to restore from {source}: with train_steps "
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
    import orbax.checkpoint as ocp

    from orbax_bench_core.state import tree_bytes

    target, operation = restore_target(context.pytree), f"restore_from_{source}"
    arguments = composite(
        state=ocp.args.PyTreeRestore(
            item=target, restore_args=ocp.checkpoint_utils.construct_restore_args(target)
        )
    )
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
    verify_replicas(context, restored)
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
