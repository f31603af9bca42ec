"""Save of replicated arrays: each replica writes its share, or one replica writes all."""

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
from orbax_bench_core.benchmarks.support.existing import verify
from orbax_bench_core.benchmarks.support.options import BoundedOptions
from orbax_bench_core.benchmarks.support.replicas import find_for_replicas
from orbax_bench_core.benchmarks.support.saving import measure_save
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplicaParallelMultisliceOptions(BoundedOptions, ReshardingOptions):
    """Options of `replica_parallel_multislice`, beside those of `save_restore`.

    Attributes:
        reference_checkpoint_path: The checkpoint whose values are saved; null takes the
            checkpoint_config's data.
        reference_sharding_path: JSON file with the sharding of each leaf on one replica, which
            every replica repeats; null spreads each array over the devices of a replica.
        num_savings: How many checkpoints to save, one after the other.
    """

    num_savings: Sweepable[int] = 1

    least = {"num_savings": 1}


@benchmark_options(ReplicaParallelMultisliceOptions)
class ReplicaParallelMultislice(BenchmarksGenerator[ReplicaParallelMultisliceOptions]):
    """Measures saves of arrays that every replica of a mesh holds; its first axis is `replica`.

    The operations are those of `save_restore` without the load, once per saving. The last
    checkpoint is loaded back and verified outside the clock. `use_replica_parallel` is what there
    is to compare.
    """

    def test_fn(self, context: TestContext[ReplicaParallelMultisliceOptions]) -> TestResult:
        """Lays the data out over the replicas and saves it as often as asked."""
        from orbax_bench_core.state import orbax_api

        metrics, options = Metrics(), context.options
        reference, target = find_for_replicas(
            context,
            "replica_parallel_multislice",
            path=options.reference_checkpoint_path,
            sharding_path=options.reference_sharding_path,
            saving=options.orbax_context(),
        )
        with options.orbax_context():
            tree = reference.load(target)
            reference.drop()
            for saving in range(options.num_savings):
                path = context.path / "ckpt" / str(saving)
                measure_save(
                    metrics,
                    context,
                    path,
                    tree,
                    asynchronous=options.async_enabled,
                    collectors=options.collectors,
                )
            if context.verifier is not None:
                verify(context, reference, orbax_api.load(path, target))
        return TestResult(metrics=metrics)
