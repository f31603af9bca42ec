"""Load of a checkpoint into other shardings than it was saved with."""

from __future__ import annotations

import dataclasses

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.benchmarks.save_restore import SaveRestoreOptions
from orbax_bench_core.benchmarks.support.existing import find_reference, measure_load, verify
from orbax_bench_core.benchmarks.support.replicas import check_broadcast
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReshardingOptions(SaveRestoreOptions):
    """Options of `resharding`, beside those of `save_restore`.

    Those that concern saving hold for the reference checkpoint, if it is made here.

    Attributes:
        reference_checkpoint_path: The checkpoint to load; null takes that of the checkpoint_config,
            and saves data that were generated first, on their own mesh.
        reference_sharding_path: JSON file with the target sharding of each leaf, over all devices;
            null spreads each array over all devices as far as its dimensions allow.
    """

    reference_checkpoint_path: Sweepable[str | None] = None
    reference_sharding_path: Sweepable[str | None] = None


@benchmark_options(ReshardingOptions)
class Resharding(BenchmarksGenerator[ReshardingOptions]):
    """Measures `load` of a checkpoint into shardings other than those it was saved with.

    What was loaded is compared as in `orbax_load`.
    """

    def test_fn(self, context: TestContext[ReshardingOptions]) -> TestResult:
        """Runs one load."""
        import jax

        metrics, options = Metrics(), context.options
        reference = find_reference(
            context,
            options.reference_checkpoint_path,
            option="reference_checkpoint_path",
            saving=options.orbax_context(),
        )
        sharding = options.reference_sharding_path
        targets = reference.targets(sharding, jax.devices())
        if options.use_load_and_broadcast:
            check_broadcast(targets)
        target = reference.tree(targets)
        with options.orbax_context():
            restored = measure_load(metrics, context, reference, target)
        verify(context, reference, restored)
        return TestResult(metrics=metrics, inventory_path=reference.inventory_path)
