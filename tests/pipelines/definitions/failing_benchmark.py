"""A benchmark that fails when it is asked to."""

import dataclasses

from orbax_bench_core.authoring import (
    BenchmarkOptions,
    BenchmarksGenerator,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class FailingOptions(BenchmarkOptions):
    fail: bool | list[bool] = False


@benchmark_options(FailingOptions)
class Failing(BenchmarksGenerator):
    def test_fn(self, context):
        metrics = Metrics()
        with metrics.measure("work"):
            if context.options.fail:
                raise ValueError("failed on purpose")
        return TestResult(metrics=metrics)
