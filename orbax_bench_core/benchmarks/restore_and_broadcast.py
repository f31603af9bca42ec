"""Load for several replicas: one reads storage and broadcasts, or each reads for itself."""

from __future__ import annotations

import dataclasses

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.benchmarks.resharding import ReshardingOptions
from orbax_bench_core.benchmarks.support.existing import measure_load, verify
from orbax_bench_core.benchmarks.support.replicas import check_replicas, find_for_replicas
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

    use_load_and_broadcast: Sweepable[bool] = True


@benchmark_options(RestoreAndBroadcastOptions)
class RestoreAndBroadcast(BenchmarksGenerator[RestoreAndBroadcastOptions]):
    """Measures `load` onto every replica of a mesh whose first axis is `replica`.

    What was loaded is compared as in `resharding`, and every replica with every other.
    """

    def test_fn(self, context: TestContext[RestoreAndBroadcastOptions]) -> TestResult:
        """Runs one load."""
        metrics, options = Metrics(), context.options
        reference, target = find_for_replicas(
            context,
            "restore_and_broadcast",
            path=options.reference_checkpoint_path,
            sharding_path=options.reference_sharding_path,
            saving=options.orbax_context(),
        )
        with options.orbax_context():
            restored = measure_load(metrics, context, reference, target)
        if context.verifier is not None:
            check_replicas(restored)
        verify(context, reference, restored)
        return TestResult(metrics=metrics, inventory_path=reference.inventory_path)
