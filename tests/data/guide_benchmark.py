"""The class of the published guide's section 3 (Apache-2.0), with its two import lines changed."""

import dataclasses

import jax
from orbax.checkpoint import v1 as ocp

from orbax_bench_core import authoring as benchmarks_core
from orbax_bench_core import measure as metric_lib


@dataclasses.dataclass(frozen=True)
class SaveRestoreOptions(benchmarks_core.BenchmarkOptions):
    use_ocdbt: bool | list[bool] = True

    def is_valid(self) -> bool:
        return True


@benchmarks_core.benchmark_options(SaveRestoreOptions)
class SaveRestoreBenchmark(benchmarks_core.BenchmarksGenerator):
    def test_fn(self, context: benchmarks_core.TestContext) -> benchmarks_core.TestResult:
        metrics = metric_lib.Metrics()
        options = context.options
        pytree = context.pytree
        abstract = jax.tree.map(ocp.arrays.to_shape_dtype_struct, pytree)
        path = context.path / "ckpt"
        with ocp.Context(
            array_options=ocp.options.ArrayOptions(
                saving=ocp.options.ArrayOptions.Saving(use_ocdbt=options.use_ocdbt)
            )
        ):
            with metrics.measure("save"):
                ocp.save(path, pytree)
            with metrics.measure("load"):
                _ = ocp.load(path, abstract_state=abstract)
        return benchmarks_core.TestResult(metrics=metrics)
