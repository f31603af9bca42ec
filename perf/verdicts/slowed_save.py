"""A save with something planted, for real comparisons whose answer is known."""

import dataclasses
import random
import time
from typing import ClassVar

from orbax_bench_core import authoring
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class SlowedSaveOptions(authoring.BenchmarkOptions):
    """Options of the save.

    Attributes:
        slower: Share of its own time by which each save takes longer; 0 plants nothing.
        stalls: Share of the saves that take 20 times as long.
        fails: Share of the saves that fail.
        after: Share of its own time by which the next save in this process takes longer.
    """

    slower: authoring.Sweepable[float] = 0.0
    stalls: authoring.Sweepable[float] = 0.0
    fails: authoring.Sweepable[float] = 0.0
    after: authoring.Sweepable[float] = 0.0


@authoring.benchmark_options(SlowedSaveOptions)
class SlowedSave(authoring.BenchmarksGenerator[SlowedSaveOptions]):
    """Measures `save` of Orbax, in the background as a whole, and a `load` that nothing slows."""

    _left_behind: ClassVar[float] = 0.0

    def test_fn(self, context: authoring.TestContext[SlowedSaveOptions]) -> authoring.TestResult:
        """Saves and loads once."""
        from orbax.checkpoint import v1 as ocp

        options, metrics = context.options, Metrics()
        held_up = options.slower + self._left_behind
        held_up += 19.0 if random.random() < options.stalls else 0.0
        SlowedSave._left_behind = options.after
        if random.random() < options.fails:
            raise RuntimeError("a planted failure")
        with metrics.measure("save"):
            began = time.perf_counter()
            ocp.save_async(context.path / "ckpt", context.pytree).result()
            time.sleep(held_up * (time.perf_counter() - began))
        with metrics.measure("load"):
            restored = ocp.load(context.path / "ckpt", context.pytree)
        context.verify(restored)
        return authoring.TestResult(metrics=metrics)
