"""Save and restore with Orbax's v0 `PyTreeCheckpointHandler`."""

from __future__ import annotations

import dataclasses
from typing import Any

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.benchmarks.support.needs import require_tree
from orbax_bench_core.benchmarks.support.options import (
    MeasuringOptions,
    ReplicaFolderOptions,
    delete_if_scarce,
)
from orbax_bench_core.benchmarks.support.v0 import (
    array_handler,
    measure_two_part_save,
    registry_with,
    restore_target,
)
from orbax_bench_core.measure import Metrics

_PRIORITIZED = "a"


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
    """

    async_enabled: Sweepable[bool] = True
    use_ocdbt: Sweepable[bool] = True
    use_zarr3: Sweepable[bool] = False
    use_compression: Sweepable[bool] = True
    save_concurrent_gb: Sweepable[float | None] = None
    restore_concurrent_gb: Sweepable[float | None] = None
    use_replica_parallel: Sweepable[bool] = False
    enable_replica_parallel_separate_folder: Sweepable[bool] = False
    use_colocated_python: Sweepable[bool] = False
    save_device_host_concurrent_gb: Sweepable[float | None] = None

    def handler(self) -> Any:
        """Makes the handler that these options describe; nothing outside it changes."""
        import orbax.checkpoint as ocp

        arrays = array_handler(
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
            is_prioritized_key_fn=lambda path: _PRIORITIZED in ocp.tree.str_keypath(path),
            type_handler_registry=registry_with(arrays),
        )


@benchmark_options(PyTreeCheckpointOptions)
class PyTreeCheckpoint(BenchmarksGenerator[PyTreeCheckpointOptions]):
    """Measures `save_blocking`, `save_background`, `save` (their whole) and `restore`.

    They drive a v0 `Checkpointer` with a `PyTreeCheckpointHandler`. What was restored is verified
    outside the clock. A save that is not asynchronous has no `save_background`.
    """

    def test_fn(self, context: TestContext[PyTreeCheckpointOptions]) -> TestResult:
        """Runs one save and one restore."""
        import contextlib

        import jax
        import orbax.checkpoint as ocp

        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        tree, path = require_tree(context, "pytree_checkpoint"), context.path / "pytree"
        num_bytes, target = tree_bytes(tree), restore_target(tree)
        kind = ocp.AsyncCheckpointer if options.async_enabled else ocp.Checkpointer
        with contextlib.closing(kind(options.handler())) as checkpointer:
            measure_two_part_save(
                metrics,
                context,
                path,
                tree,
                begin=lambda: checkpointer.save(path, args=ocp.args.PyTreeSave(tree)),
                finish=checkpointer.wait_until_finished if options.async_enabled else None,
                collectors=options.collectors,
            )
            delete_if_scarce(tree)
            arguments = ocp.args.PyTreeRestore(
                item=target, restore_args=ocp.checkpoint_utils.construct_restore_args(target)
            )
            context.prepare_load("restore", path)
            with metrics.measure("restore", options.collectors, num_bytes=num_bytes):
                restored = jax.block_until_ready(checkpointer.restore(path, args=arguments))
        context.verify(restored)
        return TestResult(metrics=metrics)
