"""A benchmark that takes as long as it is told to, so that tests know the true ratio."""

import dataclasses
import time

from orbax_bench_core import authoring
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class SteadyOptions(authoring.BenchmarkOptions):
    """How long the operations take, and when the benchmark fails.

    Attributes:
        save_s: Seconds of `save`.
        load_s: Seconds of `load`.
        fails_from: The first repeat that fails.
    """

    save_s: float | list[float] = 0.02
    load_s: float = 0.02
    fails_from: int = 1_000_000


@authoring.benchmark_options(SteadyOptions)
class Steady(authoring.BenchmarksGenerator):
    """Sleeps in `save` and in `load`."""

    def test_fn(self, context: authoring.TestContext) -> authoring.TestResult:
        metrics, options = Metrics(), context.options
        if (context.repeat_index or 0) >= options.fails_from:
            raise OSError("the storage is gone")
        for operation, seconds in (("save", options.save_s), ("load", options.load_s)):
            with metrics.measure(operation, ["time"]):
                time.sleep(seconds)
        return authoring.TestResult(metrics=metrics)
