"""Restore on one replica that broadcasts to the others, with Orbax's v0 array handler for that."""

from __future__ import annotations

import dataclasses
from typing import Any

from orbax_bench_core.authoring import (
    BenchmarkOptions,
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    UnmetNeed,
    benchmark_options,
)
from orbax_bench_core.benchmarks.support.needs import (
    require_arrays,
    require_processes,
    require_replicas,
    require_unsharded_replicas,
)
from orbax_bench_core.benchmarks.support.replicas import own_replica, verify_replicas
from orbax_bench_core.benchmarks.support.v0 import (
    array_handler,
    measure_two_part_save,
    registry_with,
    restore_target,
)
from orbax_bench_core.measure import Metrics

_NAME = "single_replica"


@dataclasses.dataclass(frozen=True, kw_only=True)
class SingleReplicaOptions(BenchmarkOptions):
    """Options of `single_replica`.

    Attributes:
        replica_axis_index: Index of the mesh axis along which replicas lie.
        primary_replica_id: The replica that reads.
        use_replica_parallel: Have each replica write a part of the checkpoint.
        broadcast_memory_limit_bytes: Most memory that one broadcast takes on a device; a tree that
            needs more takes several. Null takes a share of what is free.
        broadcast_memory_scaling_factor: That share, up to 1.
        use_colocated_python: On Pathways, have the hosts of the devices read and write.
        use_distributed_process_id: Tell processes apart by the id that jax.distributed gave them,
            which therefore must run; otherwise by JAX's own index.
    """

    replica_axis_index: Sweepable[int] = 0
    primary_replica_id: Sweepable[int] = 0
    use_replica_parallel: Sweepable[bool] = True
    broadcast_memory_limit_bytes: Sweepable[int | None] = None
    broadcast_memory_scaling_factor: Sweepable[float] = 0.75
    use_colocated_python: Sweepable[bool] = False
    use_distributed_process_id: Sweepable[bool] = True

    def __post_init__(self) -> None:
        """Refuses to take more memory than there is."""
        factor = self.broadcast_memory_scaling_factor
        if isinstance(factor, int | float) and not 0 < factor <= 1:
            raise ValueError(
                f"broadcast_memory_scaling_factor must be above 0 and up to 1, got {factor}"
            )

    def handler(self) -> Any:
        """Makes the handler that these options describe; nothing outside it changes."""
        import orbax.checkpoint as ocp
        from orbax.checkpoint._src.metadata import array_metadata_store

        arrays = array_handler(
            use_colocated_python=self.use_colocated_python,
            single_replica=True,
            replica_axis_index=self.replica_axis_index,
            primary_replica_id=self.primary_replica_id,
            use_replica_parallel=self.use_replica_parallel,
            broadcast_memory_limit_bytes=self.broadcast_memory_limit_bytes,
            broadcast_memory_scaling_factor=self.broadcast_memory_scaling_factor,
            array_metadata_store=array_metadata_store.Store(),
        )
        return ocp.PyTreeCheckpointHandler(type_handler_registry=registry_with(arrays))


@benchmark_options(SingleReplicaOptions)
class SingleReplica(BenchmarksGenerator[SingleReplicaOptions]):
    """Measures `save_blocking`, `save_background`, `save` (their whole) and `restore`.

    It needs a mesh of several replicas, none of which splits an array with another. What was
    restored is verified outside the clock, and every replica compared with every other.
    """

    def test_fn(self, context: TestContext[SingleReplicaOptions]) -> TestResult:
        """Runs one save and one restore."""
        from orbax_bench_core.benchmarks.support import replicas

        options = context.options
        mesh = require_replicas(context, options.replica_axis_index, _NAME)
        tree = require_arrays(context, _NAME)
        require_unsharded_replicas(tree, mesh, options.replica_axis_index, _NAME)
        if options.primary_replica_id not in range(mesh.devices.shape[options.replica_axis_index]):
            raise UnmetNeed(
                f"primary_replica_id: {options.primary_replica_id} needs that many replicas and "
                f"one more; the mesh has {mesh.devices.shape[options.replica_axis_index]}"
            )
        flags = {replicas.PROCESS_ID_FLAG: options.use_distributed_process_id}
        if options.use_distributed_process_id:
            require_processes(2, f"{_NAME} with use_distributed_process_id: true")
        with replicas.orbax_flags(**flags):
            if options.use_distributed_process_id:
                replicas.initialize()
            return TestResult(metrics=_save_and_restore(context, options, tree))


def _save_and_restore(context: TestContext, options: SingleReplicaOptions, tree: Any) -> Metrics:
    import contextlib

    import jax
    import orbax.checkpoint as ocp

    from orbax_bench_core.state import tree_bytes

    metrics, path, target = Metrics(), context.path / "checkpoint", restore_target(tree)
    with contextlib.closing(ocp.AsyncCheckpointer(options.handler())) as checkpointer:
        measure_two_part_save(
            metrics,
            context,
            path,
            tree,
            begin=lambda: checkpointer.save(path, args=ocp.args.PyTreeSave(tree)),
            finish=checkpointer.wait_until_finished,
        )
        arguments = ocp.args.PyTreeRestore(
            item=target,
            restore_args=jax.tree.map(
                lambda leaf: ocp.type_handlers.SingleReplicaArrayRestoreArgs(
                    sharding=leaf.sharding,
                    single_replica_sharding=_on_own_replica(
                        leaf.sharding, options.replica_axis_index
                    ),
                    global_shape=leaf.shape,
                    dtype=leaf.dtype,
                ),
                target,
            ),
        )
        context.prepare_load("restore", path)
        with metrics.measure("restore", num_bytes=tree_bytes(tree)):
            restored = jax.block_until_ready(checkpointer.restore(path, args=arguments))
    verify_replicas(context, restored)
    return metrics


def _on_own_replica(sharding: Any, axis: Any) -> Any:
    import jax

    return jax.sharding.NamedSharding(own_replica(sharding.mesh, axis), sharding.spec)
