"""A benchmark that does nothing, and one that takes the step that measures it along."""

import dataclasses
import os
import signal

from orbax_bench_core.authoring import (
    BenchmarkOptions,
    BenchmarksGenerator,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoopOptions(BenchmarkOptions):
    """Options.

    Attributes:
        number: Tells points apart.
        kills: Whether the step is killed that has started the worker, as a node that dies does.
    """

    number: int | list[int] = 0
    kills: bool | list[bool] = False


@benchmark_options(NoopOptions)
class Noop(BenchmarksGenerator):
    def test_fn(self, context):
        if context.options.kills:
            os.kill(os.getppid(), signal.SIGKILL)
            # The end of the step takes the worker along, which could write a record until then.
            signal.pause()
        metrics = Metrics()
        with metrics.measure("work"):
            pass
        return TestResult(metrics=metrics)
