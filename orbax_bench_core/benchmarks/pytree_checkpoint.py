"""Orbax's v0 `PyTreeCheckpointHandler`: for all replicas, or one that broadcasts."""

import contextlib
import dataclasses
from typing import Any

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support import needs, replicas, saving
from orbax_bench_core.benchmarks.support.options import (
    MeasuringOptions,
    ReplicaFolderOptions,
    delete_if_scarce,
    later,
)
from orbax_bench_core.measure import Metrics

_PRIORITIZED = "a"


def _handlers(*, use_colocated_python: bool, single_replica: bool = False, **options: Any) -> Any:
    """Returns Orbax's usual handlers, with one of these options for `jax.Array`."""
    import jax
    import numpy as np
    import orbax.checkpoint as ocp

    from orbax_bench_core.state import require_pathways

    if use_colocated_python:
        require_pathways("use_colocated_python: true")
    handlers = ocp.type_handlers
    if ocp.multihost.is_pathways_backend():
        registry = needs.require_orbax_module(
            "_src.serialization.pathways_handler_registry", "use_colocated_python"
        )
        implementation = registry.CheckpointingImpl.from_options(
            use_colocated_python=use_colocated_python
        )
        arrays = registry.get_pathways_array_handler(
            single_replica, checkpointing_impl=implementation, **options
        )
    elif single_replica:
        arrays = handlers.SingleReplicaArrayHandler(**options)
    else:
        arrays = handlers.ArrayHandler(**options)
    types = (int, float, bytes, np.number, np.ndarray, str)
    return handlers.create_type_handler_registry(
        *((kind, handlers.get_type_handler(kind)) for kind in types), (jax.Array, arrays)
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PyTreeCheckpointOptions(ReplicaFolderOptions, MeasuringOptions):
    """Options of `pytree_checkpoint`.

    Attributes:
        async_enabled: Save in the background, with an `AsyncCheckpointer`.
        use_ocdbt: Store arrays in OCDBT, a database of few files, rather than a folder per array.
        use_zarr3: Store arrays as Zarr v3 rather than v2.
        use_compression: Compress array data with zstd.
        save_concurrent_gb: Most data in flight to storage, in GB; null takes Orbax's own limit.
        restore_concurrent_gb: Most data in flight while restoring, in GB; null takes Orbax's own
            limit.
        use_replica_parallel: Have each replica write a part of a replicated array.
        enable_replica_parallel_separate_folder: Give each replica's part a folder of its own; needs
            use_replica_parallel and use_ocdbt.
        use_colocated_python: On Pathways, have the hosts of the devices read and write.
        save_device_host_concurrent_gb: Most data in flight from the devices, in GB; null sets no
            limit. Leaves with an "a" in their path go first, and are not limited.
        enable_pinned_host_transfer: Copy off the devices into pinned memory; null does so on GPUs.
    """

    async_enabled: interface.Sweepable[bool] = True
    use_ocdbt: interface.Sweepable[bool] = True
    use_zarr3: interface.Sweepable[bool] = False
    use_compression: interface.Sweepable[bool] = True
    save_concurrent_gb: interface.Sweepable[float | None] = None
    restore_concurrent_gb: interface.Sweepable[float | None] = None
    use_replica_parallel: interface.Sweepable[bool] = False
    enable_replica_parallel_separate_folder: interface.Sweepable[bool] = False
    use_colocated_python: interface.Sweepable[bool] = False
    save_device_host_concurrent_gb: interface.Sweepable[float | None] = None
    enable_pinned_host_transfer: interface.Sweepable[bool | None] = later(None)

    def handler(self) -> Any:
        """Makes the handler that these options describe; nothing outside it changes."""
        import orbax.checkpoint as ocp

        from orbax_bench_core.state import orbax_api

        limited: dict[str, Any] = {}
        if self.save_device_host_concurrent_gb is not None and orbax_api.has_background_callback():
            limited["callback"] = orbax_api.background_callback(f"^[^{_PRIORITIZED}]*$")
        handlers = _handlers(
            **limited,
            use_colocated_python=self.use_colocated_python,
            use_replica_parallel=self.use_replica_parallel,
            enable_replica_parallel_separate_folder=self.enable_replica_parallel_separate_folder,
        )
        return ocp.PyTreeCheckpointHandler(
            use_ocdbt=self.use_ocdbt,
            use_zarr3=self.use_zarr3,
            use_compression=self.use_compression,
            save_concurrent_gb=self.save_concurrent_gb,
            restore_concurrent_gb=self.restore_concurrent_gb,
            save_device_host_concurrent_gb=self.save_device_host_concurrent_gb,
            enable_pinned_host_transfer=self.enable_pinned_host_transfer,
            is_prioritized_key_fn=lambda path: _PRIORITIZED in ocp.tree.str_keypath(path),
            type_handler_registry=handlers,
        )


@interface.benchmark_options(PyTreeCheckpointOptions)
class PyTreeCheckpoint(interface.BenchmarksGenerator[PyTreeCheckpointOptions]):
    """Measures `save_blocking`, `save_background`, `save` (their whole) and `restore`.

    They drive a v0 `Checkpointer` with a `PyTreeCheckpointHandler`. What was restored is verified
    outside the clock. A save that is not asynchronous has no `save_background`.
    """

    def test_fn(
        self, context: interface.TestContext[PyTreeCheckpointOptions]
    ) -> interface.TestResult:
        """Runs one save and one restore."""
        import jax
        import orbax.checkpoint as ocp

        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        tree, path = needs.require_tree(context, "pytree_checkpoint"), context.path / "pytree"
        num_bytes, target = tree_bytes(tree), saving.restore_target(tree)
        kind = ocp.AsyncCheckpointer if options.async_enabled else ocp.Checkpointer
        with contextlib.closing(kind(options.handler())) as checkpointer:
            saving.measure_two_part_save(
                metrics,
                context,
                path,
                tree,
                begin=lambda: checkpointer.save(path, args=ocp.args.PyTreeSave(tree)),
                finish=checkpointer.wait_until_finished if options.async_enabled else None,
                collectors=options.collectors,
            )
            delete_if_scarce(tree)
            arguments = saving.pytree_restore(target, item=target)
            context.prepare_load("restore", path)
            with metrics.measure("restore", options.collectors, num_bytes=num_bytes):
                restored = jax.block_until_ready(checkpointer.restore(path, args=arguments))
        context.verify(restored)
        return interface.TestResult(metrics=metrics)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SingleReplicaOptions(interface.BenchmarkOptions):
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

    replica_axis_index: interface.Sweepable[int] = 0
    primary_replica_id: interface.Sweepable[int] = 0
    use_replica_parallel: interface.Sweepable[bool] = True
    broadcast_memory_limit_bytes: interface.Sweepable[int | None] = None
    broadcast_memory_scaling_factor: interface.Sweepable[float] = 0.75
    use_colocated_python: interface.Sweepable[bool] = False
    use_distributed_process_id: interface.Sweepable[bool] = True

    def __post_init__(self) -> None:
        factor = self.broadcast_memory_scaling_factor
        if isinstance(factor, int | float) and not 0 < factor <= 1:
            raise ValueError(
                f"broadcast_memory_scaling_factor must be above 0 and up to 1, got {factor}"
            )

    def handler(self) -> Any:
        """Makes the handler that these options describe; nothing outside it changes."""
        import orbax.checkpoint as ocp
        from orbax.checkpoint._src.metadata import array_metadata_store

        handlers = _handlers(
            use_colocated_python=self.use_colocated_python,
            single_replica=True,
            replica_axis_index=self.replica_axis_index,
            primary_replica_id=self.primary_replica_id,
            use_replica_parallel=self.use_replica_parallel,
            broadcast_memory_limit_bytes=self.broadcast_memory_limit_bytes,
            broadcast_memory_scaling_factor=self.broadcast_memory_scaling_factor,
            array_metadata_store=array_metadata_store.Store(),
        )
        return ocp.PyTreeCheckpointHandler(type_handler_registry=handlers)


@interface.benchmark_options(SingleReplicaOptions)
class SingleReplica(interface.BenchmarksGenerator[SingleReplicaOptions]):
    """Measures `save_blocking`, `save_background`, `save` (their whole) and `restore`.

    It needs a mesh of several replicas, none of which splits an array with another. What was
    restored is verified outside the clock, and every replica compared with every other.
    """

    def test_fn(self, context: interface.TestContext[SingleReplicaOptions]) -> interface.TestResult:
        """Runs one save and one restore."""
        options = context.options
        mesh, tree = needs.require_replicas(context, options.replica_axis_index, "single_replica")
        if options.primary_replica_id not in range(mesh.devices.shape[options.replica_axis_index]):
            raise interface.UnmetNeed(
                f"primary_replica_id: {options.primary_replica_id} needs that many replicas and "
                f"one more; the mesh has {mesh.devices.shape[options.replica_axis_index]}"
            )
        flags = {replicas.PROCESS_ID_FLAG: options.use_distributed_process_id}
        if options.use_distributed_process_id:
            needs.require_processes("single_replica with use_distributed_process_id: true")
        with replicas.orbax_flags(**flags):
            if options.use_distributed_process_id:
                replicas.initialize()
            return interface.TestResult(metrics=_save_and_restore(context, options, tree))


def _save_and_restore(
    context: interface.TestContext, options: SingleReplicaOptions, tree: Any
) -> Metrics:
    import jax
    import orbax.checkpoint as ocp

    from orbax_bench_core.state import tree_bytes

    metrics, path, target = Metrics(), context.path / "checkpoint", saving.restore_target(tree)
    with contextlib.closing(ocp.AsyncCheckpointer(options.handler())) as checkpointer:
        saving.measure_two_part_save(
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
    replicas.verify_replicas(context, restored)
    return metrics


def _on_own_replica(sharding: Any, axis: Any) -> Any:
    import jax

    return jax.sharding.NamedSharding(replicas.own_replica(sharding.mesh, axis), sharding.spec)
