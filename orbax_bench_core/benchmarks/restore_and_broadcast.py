"""Loads a checkpoint for several replicas: one reads storage, the others hear from it."""

from __future__ import annotations

import dataclasses
from typing import cast

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    TestContext,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.benchmarks.resharding import ReshardingOptions
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class RestoreAndBroadcastOptions(ReshardingOptions):
    """Options of `restore_and_broadcast`, beside those of `save_restore`.

    Attributes:
        reference_sharding_path: JSON file with the target sharding of each leaf on one replica,
            which every replica repeats; null spreads each array over the devices of a replica.
        use_load_and_broadcast: Load on one replica and broadcast to the others; otherwise every
            replica reads from storage.
    """

    use_load_and_broadcast: bool | list[bool] = True


@benchmark_options(RestoreAndBroadcastOptions)
class RestoreAndBroadcast(BenchmarksGenerator):
    """Measures `load` onto every replica of a mesh whose first axis is `replica`.

    What was loaded is compared as in `resharding`, and every replica with every other.
    """

    def test_fn(self, context: TestContext) -> TestResult:
        """Runs one load."""
        from orbax_bench_core.benchmarks.support.existing import verify
        from orbax_bench_core.benchmarks.support.options import delete_if_scarce
        from orbax_bench_core.benchmarks.support.replicas import check_replicas, find_for_replicas

        metrics, options = Metrics(), context.options
        assert isinstance(options, RestoreAndBroadcastOptions)
        reference, target = find_for_replicas(
            context,
            "restore_and_broadcast",
            path=cast("str | None", options.reference_checkpoint_path),
            sharding_path=cast("str | None", options.reference_sharding_path),
            saving=options.orbax_context(),
        )
        delete_if_scarce(context.pytree)
        context.prepare_load("load", reference.location.root)
        with (
            options.orbax_context(),
            metrics.measure("load", options.collectors, num_bytes=reference.num_bytes),
        ):
            restored = reference.load(target)
        if context.verifier is not None:
            check_replicas(restored)
        verify(context, reference, restored)
        return TestResult(metrics=metrics, inventory_path=reference.inventory_path)
