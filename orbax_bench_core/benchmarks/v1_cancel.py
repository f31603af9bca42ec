"""Cancellation of a save of Orbax's v1 `Checkpointer`, and the save of the next step."""

from __future__ import annotations

import dataclasses
import errno
from typing import Any

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    TestContext,
    TestResult,
    UnmetNeed,
    VerificationError,
    benchmark_options,
)
from orbax_bench_core.benchmarks.support.cancelling import (
    CancelOptions,
    measure_cancel,
    require_cancellable,
)
from orbax_bench_core.benchmarks.support.needs import require_orbax_module, require_tree
from orbax_bench_core.benchmarks.support.saving import load_target
from orbax_bench_core.measure import Metrics

_STEP, _MOST_TRIES = 1, 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class V1CancelOptions(CancelOptions):
    """Options of `v1_cancel`."""


@benchmark_options(V1CancelOptions)
class V1Cancel(BenchmarksGenerator[V1CancelOptions]):
    """Measures `save_blocking`, `cancel`, the `save_blocking` of the next step, `save_background`.

    Without a cancellation only one step is saved. Cancelling also deletes what the save had written
    or even finished: that the cancelled step is gone is checked, and the last one verified, outside
    the clock. To cancel, it needs a single process.
    """

    def test_fn(self, context: TestContext[V1CancelOptions]) -> TestResult:
        """Begins a save, cancels it, and saves the next step."""
        import contextlib

        import jax

        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        tree = jax.block_until_ready(require_tree(context, "v1_cancel"))
        num_bytes, last = tree_bytes(tree), _STEP + bool(options.perform_cancellation)
        training = require_orbax_module("experimental.v1.training", "v1_cancel")
        require_cancellable(options, "v1_cancel")
        with contextlib.closing(training.Checkpointer(context.path / "steps")) as checkpointer:
            if not hasattr(checkpointer, "cancel"):
                raise UnmetNeed("v1_cancel needs an orbax-checkpoint whose Checkpointer can cancel")
            with metrics.measure("save_blocking"):
                checkpointer.save_async(_STEP, tree)
            if options.perform_cancellation:
                measure_cancel(
                    metrics,
                    options,
                    in_progress=checkpointer.is_saving_in_progress,
                    cancel=lambda: _cancel(metrics, checkpointer),
                )
                with metrics.measure("save_blocking"):
                    checkpointer.save_async(last, tree)
            with metrics.measure("save_background"):
                checkpointer.wait()
            checkpointer.reload()
            found = [checkpoint.step for checkpoint in checkpointer.checkpoints]
            if found != [last]:
                raise VerificationError(f"only step {last} should be there; there is {found}")
            context.prepare_load("load", context.path / "steps")
            with metrics.measure("load", num_bytes=num_bytes):
                loaded = jax.block_until_ready(checkpointer.load(last, load_target(tree)))
        context.verify(loaded)
        return TestResult(metrics=metrics)


def _cancel(metrics: Metrics, checkpointer: Any) -> None:
    """Cancels, as often as it takes: Orbax deletes a folder that its save may still be writing to.

    What it takes is part of what a cancellation costs, and is noted in the record.
    """
    for tries in range(_MOST_TRIES):
        try:
            checkpointer.cancel(step=_STEP)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or tries + 1 == _MOST_TRIES:
                raise
            metrics.notes["cancel"] = [f"Orbax cancelled at try {tries + 2}; before that: {error}"]
        else:
            return
