"""A benchmark of one's own whose option has the name of one of Orbax's."""

import dataclasses

from orbax_bench_core.authoring import (
    BenchmarkOptions,
    BenchmarksGenerator,
    TestContext,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(BenchmarkOptions):
    """Options that mean what their author says."""

    use_ocdbt: bool = False
    other: int = 1


@benchmark_options(Options)
class OwnOptions(BenchmarksGenerator):
    """Measures nothing to speak of."""

    def test_fn(self, context: TestContext) -> TestResult:
        metrics = Metrics()
        with metrics.measure("work"):
            pass
        return TestResult(metrics=metrics)
