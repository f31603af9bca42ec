"""Save and load of a checkpoint: the round trip that every training job depends on."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

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
    gib_to_bytes,
)
from orbax_bench_core.benchmarks.support.saving import measure_round_trip
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    from orbax.checkpoint import v1 as ocp


@dataclasses.dataclass(frozen=True, kw_only=True)
class SaveRestoreOptions(ReplicaFolderOptions, MeasuringOptions):
    """Options of `save_restore`.

    Attributes:
        async_enabled: Save in the background, with `save_async`; otherwise all of a save blocks.
        use_ocdbt: Store arrays in OCDBT, a database of few files, rather than a folder per array.
        use_zarr3: Store arrays as Zarr v3 rather than v2.
        use_compression: Compress array data with zstd.
        use_replica_parallel: Have each replica write a part of a replicated array.
        enable_replica_parallel_separate_folder: Give each replica's part a folder of its own; needs
            use_replica_parallel and use_ocdbt.
        use_load_and_broadcast: Load on one replica and broadcast to the others.
        chunk_byte_size: Largest chunk of an array on storage, in bytes; null takes one chunk per
            shard.
        save_concurrent_gb: Most data in flight while saving, in GiB; null sets no limit.
        restore_concurrent_gb: Most data in flight while loading, in GiB; null sets no limit.
    """

    async_enabled: Sweepable[bool] = True
    use_ocdbt: Sweepable[bool] = True
    use_zarr3: Sweepable[bool] = True
    use_compression: Sweepable[bool] = True
    use_replica_parallel: Sweepable[bool] = False
    enable_replica_parallel_separate_folder: Sweepable[bool] = False
    use_load_and_broadcast: Sweepable[bool] = False
    chunk_byte_size: Sweepable[int | None] = None
    save_concurrent_gb: Sweepable[float | None] = None
    restore_concurrent_gb: Sweepable[float | None] = None

    def orbax_context(self, **more: Any) -> ocp.Context:
        """Returns these options as Orbax takes them."""
        from orbax_bench_core.state import make_context

        return make_context(
            **more,
            use_ocdbt=self.use_ocdbt,
            use_zarr3=self.use_zarr3,
            use_compression=self.use_compression,
            use_replica_parallel=self.use_replica_parallel,
            enable_replica_parallel_separate_folder=self.enable_replica_parallel_separate_folder,
            chunk_byte_size=self.chunk_byte_size,
            use_load_and_broadcast=self.use_load_and_broadcast,
            write_concurrent_bytes=gib_to_bytes(self.save_concurrent_gb),
            read_concurrent_bytes=gib_to_bytes(self.restore_concurrent_gb),
        )


@benchmark_options(SaveRestoreOptions)
class SaveRestore(BenchmarksGenerator[SaveRestoreOptions]):
    """Measures `save_blocking`, `save_background`, `save` (their whole) and `load`.

    With `durable: true` also `save_durable`, until everything is on stable storage.

    Inputs are ready before a save starts, and outputs before a load stops. What was loaded is
    verified outside the clock. A save that is not asynchronous has no `save_background`.
    """

    def test_fn(self, context: TestContext[SaveRestoreOptions]) -> TestResult:
        """Runs one save and one load."""
        metrics = Metrics()
        tree = require_tree(context, "save_restore")
        with context.options.orbax_context():
            restored = measure_round_trip(
                metrics,
                context,
                tree,
                asynchronous=context.options.async_enabled,
                collectors=context.options.collectors,
            )
        context.verify(restored)
        return TestResult(metrics=metrics)
