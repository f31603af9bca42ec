"""A benchmark of one's own: a save and a load, with one option to sweep."""

import dataclasses

import jax
from orbax.checkpoint import v1 as ocp

from orbax_bench_core.authoring import (
    BenchmarkOptions,
    BenchmarksGenerator,
    TestContext,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class SaveRestoreOptions(BenchmarkOptions):
    use_ocdbt: bool | list[bool] = True  # a list in the suite file is swept


@benchmark_options(SaveRestoreOptions)
class SaveRestoreBenchmark(BenchmarksGenerator):
    def test_fn(self, context: TestContext) -> TestResult:
        metrics = Metrics()
        target = jax.tree.map(ocp.arrays.to_shape_dtype_struct, context.pytree)
        orbax = ocp.Context()
        orbax.array.saving.use_ocdbt = context.options.use_ocdbt
        with ocp.Context(context=orbax):
            with metrics.measure("save"):
                ocp.save(context.path / "ckpt", context.pytree)
            with metrics.measure("load"):
                # Without this, work that JAX has only begun would not be in the time.
                restored = jax.block_until_ready(ocp.load(context.path / "ckpt", target))
        context.verify(restored)
        return TestResult(metrics=metrics)
