"""Orbax's emergency `CheckpointManager`: local disks often, persistent storage at times."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
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

_NAME = "emergency_checkpoint_manager"
_MODULE = "experimental.emergency.checkpoint_manager"


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
        emergency = require_orbax_module(_MODULE, _NAME)
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
        _, tree = require_two_tiers(context, options.replica_axis_index, _NAME)
        with replicas.orbax_flags(**options.flags), hosts_in_step():
            replicas.initialize()
            directories = make_directories(context, "steps")
            kind = require_orbax_module(_MODULE, _NAME).CheckpointManager

            def opened() -> contextlib.closing[Any]:
                return open_two_tier_manager(
                    metrics, context, kind, directories, options.manager_options()
                )

            with opened() as manager:
                for step in range(options.train_steps):
                    measure_step(
                        metrics,
                        context,
                        manager,
                        step,
                        tree=tree,
                        arguments=ocp.args.Composite(state=ocp.args.PyTreeSave(tree)),
                        directory=context.path,
                    )
                    if step % options.local_save_interval_steps == 0:
                        _restore(metrics, context, manager, step)
            with opened() as manager:
                _restore(metrics, context, manager, manager.latest_step())
        return TestResult(metrics=metrics)


def _restore(metrics: Metrics, context: TestContext, manager: Any, step: int) -> None:
    import jax
    import orbax.checkpoint as ocp

    from orbax_bench_core.state import tree_bytes

    target = restore_target(context.pytree)
    arguments = ocp.args.Composite(
        state=ocp.args.PyTreeRestore(
            restore_args=ocp.checkpoint_utils.construct_restore_args(target)
        )
    )
    await_all_hosts(f"saved {step}")
    with metrics.measure("reload"):
        manager.reload()
    context.prepare_load("restore", context.path)
    with metrics.measure("restore", num_bytes=tree_bytes(context.pytree)):
        restored = jax.block_until_ready(manager.restore(step, args=arguments)["state"])
    verify_replicas(context, restored)
