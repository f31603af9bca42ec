"""Cancellation of a save of Orbax's v0 `CheckpointManager`."""

from __future__ import annotations

import dataclasses
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
    note_outcome,
    require_cancellable,
)
from orbax_bench_core.benchmarks.support.needs import require_tree
from orbax_bench_core.benchmarks.support.v0 import open_checkpoint_manager, restore_target
from orbax_bench_core.measure import Metrics

_STEP = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class V0CancelOptions(CancelOptions):
    """Options of `v0_cancel`."""


@benchmark_options(V0CancelOptions)
class V0Cancel(BenchmarksGenerator[V0CancelOptions]):
    """Measures `save_blocking`, `cancel` and the `wait_after_cancel` for what went on meanwhile.

    Without a cancellation: `save_blocking` and `save_background`. A save may be faster than its
    cancellation: the record notes which it was. An existing checkpoint is measured in `restore`
    and verified; after one that was cancelled, a new save is made and verified, outside the clock.
    To cancel, it needs a single process.
    """

    def test_fn(self, context: TestContext[V0CancelOptions]) -> TestResult:
        """Begins a save, cancels it, and looks at what is left."""
        import jax
        import orbax.checkpoint as ocp

        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        tree = jax.block_until_ready(require_tree(context, "v0_cancel"))
        num_bytes, directory = tree_bytes(tree), context.path / "steps"
        require_cancellable(options, "v0_cancel")
        with open_checkpoint_manager(directory) as manager:
            with metrics.measure("save_blocking"):
                manager.save(_STEP, args=ocp.args.StandardSave(tree))
            if options.perform_cancellation:
                measure_cancel(
                    metrics,
                    options,
                    in_progress=manager.is_saving_in_progress,
                    cancel=_canceller(manager),
                )
            waiting = "wait_after_cancel" if options.perform_cancellation else "save_background"
            with metrics.measure(waiting):
                manager.wait_until_finished()
        with open_checkpoint_manager(
            directory
        ) as manager:  # one that only knows what is on storage
            committed = _STEP in manager.all_steps()
            if options.perform_cancellation:
                note_outcome(metrics, committed=committed)
            elif not committed:
                raise VerificationError(f"step {_STEP} was saved, but is not there")
            if committed:
                context.prepare_load("restore", directory)
                with metrics.measure("restore", num_bytes=num_bytes):
                    restored = jax.block_until_ready(_restore(manager, _STEP, tree))
                context.verify(restored)
            elif context.verifier is not None:
                manager.save(_STEP + 1, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
                context.verify(_restore(manager, _STEP + 1, tree))
        return TestResult(metrics=metrics)


def _canceller(manager: Any) -> Any:
    # The manager has no public way to cancel.
    cancel = getattr(manager._checkpointer, "cancel", None)  # noqa: SLF001
    if cancel is None:
        raise UnmetNeed("v0_cancel needs an orbax-checkpoint whose AsyncCheckpointer can cancel")
    return cancel


def _restore(manager: Any, step: int, tree: Any) -> Any:
    import orbax.checkpoint as ocp

    return manager.restore(step, args=ocp.args.StandardRestore(restore_target(tree)))
