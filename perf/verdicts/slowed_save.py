"""A save with a planted slow-down, for real comparisons whose answer is known."""

from __future__ import annotations

import dataclasses
import time

from orbax_bench_core.authoring import (
    BenchmarkOptions,
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class SlowedSaveOptions(BenchmarkOptions):
    """Options of the save.

    Attributes:
        slower: Share of its own time by which each save takes longer; 0 plants nothing.
    """

    slower: Sweepable[float] = 0.0


@benchmark_options(SlowedSaveOptions)
class SlowedSave(BenchmarksGenerator[SlowedSaveOptions]):
    """Measures `save` of Orbax, in the background as a whole, and a `load` that nothing slows."""

    def test_fn(self, context: TestContext[SlowedSaveOptions]) -> TestResult:
        """Saves and loads once."""
        from orbax.checkpoint import v1 as ocp

        metrics = Metrics()
        with metrics.measure("save"):
            began = time.perf_counter()
            ocp.save_async(context.path / "ckpt", context.pytree).result()
            time.sleep(context.options.slower * (time.perf_counter() - began))
        with metrics.measure("load"):
            restored = ocp.load(context.path / "ckpt", context.pytree)
        context.verify(restored)
        return TestResult(metrics=metrics)
