"""A benchmark of a package whose releases take different times."""

import dataclasses
import time

from orbax_bench_core import authoring
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleasedOptions(authoring.BenchmarkOptions):
    """It has none."""


@authoring.benchmark_options(ReleasedOptions)
class Released(authoring.BenchmarksGenerator):
    """Loads as long as the installed release of `planted` takes."""

    def test_fn(self, context: authoring.TestContext) -> authoring.TestResult:
        import planted

        metrics = Metrics()
        with metrics.measure("load", ["time"]):
            time.sleep(planted.SECONDS)
        return authoring.TestResult(metrics=metrics)
