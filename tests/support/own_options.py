"""A benchmark of one's own whose option has the name of one of Orbax's."""

import dataclasses

from orbax_bench_core import authoring
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(authoring.BenchmarkOptions):
    """Options that mean what their author says."""

    use_ocdbt: bool = False
    other: int = 1


@authoring.benchmark_options(Options)
class OwnOptions(authoring.BenchmarksGenerator):
    """Measures nothing to speak of."""

    def test_fn(self, context: authoring.TestContext) -> authoring.TestResult:
        metrics = Metrics()
        with metrics.measure("work"):
            pass
        return authoring.TestResult(metrics=metrics)
