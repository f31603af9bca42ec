"""A benchmark of a package whose releases take different times."""

import dataclasses
import time

from orbax_bench_core.authoring import (
    BenchmarkOptions,
    BenchmarksGenerator,
    TestContext,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleasedOptions(BenchmarkOptions):
    """It has none."""


@benchmark_options(ReleasedOptions)
class Released(BenchmarksGenerator):
    """Loads as long as the installed release of `planted` takes."""

    def test_fn(self, context: TestContext) -> TestResult:
        import planted

        metrics = Metrics()
        with metrics.measure("load", ["time"]):
            time.sleep(planted.SECONDS)
        return TestResult(metrics=metrics)
