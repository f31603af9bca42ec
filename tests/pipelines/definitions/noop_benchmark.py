"""A benchmark that does nothing, and one that takes the step that measures it along."""

import dataclasses
import os
import signal
import time
from pathlib import Path

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
        once: A file that a kill leaves, after which there is no other.
        lasts_s: Seconds of `work`.
    """

    number: int | list[int] = 0
    kills: bool | list[bool] = False
    once: str = ""
    lasts_s: float = 0.0


@benchmark_options(NoopOptions)
class Noop(BenchmarksGenerator):
    def test_fn(self, context):
        options = context.options
        if options.kills and not (options.once and Path(options.once).exists()):
            if options.once:
                Path(options.once).touch()
            os.kill(os.getppid(), signal.SIGKILL)
            # The end of the step takes the worker along, which could write a record until then.
            signal.pause()
        metrics = Metrics()
        with metrics.measure("work", ["time"]):
            time.sleep(options.lasts_s)
        return TestResult(metrics=metrics)
