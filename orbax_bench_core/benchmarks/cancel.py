"""Cancellation of a save, of Orbax's v0 `CheckpointManager` and its v1 `Checkpointer`."""

import contextlib
import dataclasses
import errno
import time
from collections.abc import Callable
from typing import Any

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support import needs, saving
from orbax_bench_core.measure import Metrics

_STEP, _MOST_TRIES = 1, 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class CancelOptions(interface.BenchmarkOptions):
    """Options of a benchmark that cancels a save.

    Attributes:
        cancel_delay_secs: Seconds between the start of the save and its cancellation. A save that
            is over by then cannot be cancelled.
        perform_cancellation: Whether to cancel at all, in a single process; otherwise the save runs
            to its end.
    """

    cancel_delay_secs: interface.Sweepable[float] = 2
    perform_cancellation: interface.Sweepable[bool] = True

    def __post_init__(self) -> None:
        delay = self.cancel_delay_secs
        if isinstance(delay, int | float) and delay < 0:
            raise ValueError(f"cancel_delay_secs must be 0 or more, got {delay}")


def _require_cancellable(options: CancelOptions, benchmark: str) -> None:
    # Orbax cancels on each host by itself: hosts at different points of a save then delete what
    # others write, or wait for each other for minutes.
    if options.perform_cancellation:
        needs.require_one_process(f"{benchmark} with perform_cancellation: true")


def _measure_cancel(
    metrics: Metrics,
    options: CancelOptions,
    *,
    in_progress: Callable[[], bool],
    cancel: Callable[[], object],
) -> None:
    """Waits, cancels, and measures `cancel`; `cancel_too_late` if nothing is left to cancel."""
    time.sleep(options.cancel_delay_secs)
    with metrics.measure("cancel" if in_progress() else "cancel_too_late"):
        cancel()


@interface.benchmark_options(CancelOptions)
class V0Cancel(interface.BenchmarksGenerator[CancelOptions]):
    """Measures `save_blocking`, `cancel` and the `wait_after_cancel` for what went on meanwhile.

    Without a cancellation: `save_blocking` and `save_background`. A save may be faster than its
    cancellation: the record notes which it was. An existing checkpoint is measured in `restore`
    and verified; after one that was cancelled, a new save is made and verified, outside the clock.
    To cancel, it needs a single process.
    """

    def test_fn(self, context: interface.TestContext[CancelOptions]) -> interface.TestResult:
        """Begins a save, cancels it, and looks at what is left."""
        import jax
        import orbax.checkpoint as ocp

        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        tree = jax.block_until_ready(needs.require_tree(context, "v0_cancel"))
        num_bytes, directory = tree_bytes(tree), context.path / "steps"
        _require_cancellable(options, "v0_cancel")
        with saving.open_checkpoint_manager(directory) as manager:
            with metrics.measure("save_blocking"):
                manager.save(_STEP, args=ocp.args.StandardSave(tree))
            if options.perform_cancellation:
                _measure_cancel(
                    metrics,
                    options,
                    in_progress=manager.is_saving_in_progress,
                    cancel=_canceller(manager),
                )
            waiting = "wait_after_cancel" if options.perform_cancellation else "save_background"
            with metrics.measure(waiting):
                manager.wait_until_finished()
        # One that only knows what is on storage.
        with saving.open_checkpoint_manager(directory) as manager:
            committed = _STEP in manager.all_steps()
            if options.perform_cancellation:
                left = "the save was cancelled, and left no checkpoint"
                metrics.notes["cancel"] = ["the save was faster" if committed else left]
            elif not committed:
                raise interface.VerificationError(f"step {_STEP} was saved, but is not there")
            if committed:
                context.prepare_load("restore", directory)
                with metrics.measure("restore", num_bytes=num_bytes):
                    restored = jax.block_until_ready(_restore(manager, _STEP, tree))
                context.verify(restored)
            elif context.verifier is not None:
                manager.save(_STEP + 1, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
                context.verify(_restore(manager, _STEP + 1, tree))
        return interface.TestResult(metrics=metrics)


def _canceller(manager: Any) -> Any:
    # The manager has no public way to cancel.
    cancel = getattr(manager._checkpointer, "cancel", None)  # noqa: SLF001
    if cancel is None:
        raise interface.UnmetNeed(
            "v0_cancel needs an orbax-checkpoint whose AsyncCheckpointer can cancel"
        )
    return cancel


def _restore(manager: Any, step: int, tree: Any) -> Any:
    import orbax.checkpoint as ocp

    return manager.restore(step, args=ocp.args.StandardRestore(saving.restore_target(tree)))


@interface.benchmark_options(CancelOptions)
class V1Cancel(interface.BenchmarksGenerator[CancelOptions]):
    """Measures `save_blocking`, `cancel`, the `save_blocking` of the next step, `save_background`.

    Without a cancellation only one step is saved. Cancelling also deletes what the save had written
    or even finished: that the cancelled step is gone is checked, and the last one verified, outside
    the clock. To cancel, it needs a single process.
    """

    def test_fn(self, context: interface.TestContext[CancelOptions]) -> interface.TestResult:
        """Begins a save, cancels it, and saves the next step."""
        import jax

        from orbax_bench_core.state import tree_bytes, without_host_copies

        metrics, options = Metrics(), context.options
        tree = jax.block_until_ready(needs.require_tree(context, "v1_cancel"))
        num_bytes, last = tree_bytes(tree), _STEP + bool(options.perform_cancellation)
        training = needs.require_orbax_module("experimental.v1.training", "v1_cancel")
        _require_cancellable(options, "v1_cancel")
        with contextlib.closing(training.Checkpointer(context.path / "steps")) as checkpointer:
            if not hasattr(checkpointer, "cancel"):
                raise interface.UnmetNeed(
                    "v1_cancel needs an orbax-checkpoint whose Checkpointer can cancel"
                )
            with metrics.measure("save_blocking"):
                checkpointer.save_async(_STEP, tree)
            if options.perform_cancellation:
                _measure_cancel(
                    metrics,
                    options,
                    in_progress=checkpointer.is_saving_in_progress,
                    cancel=lambda: _cancel(metrics, checkpointer),
                )
                tree = without_host_copies(tree)
                with metrics.measure("save_blocking"):
                    checkpointer.save_async(last, tree)
            with metrics.measure("save_background"):
                checkpointer.wait()
            checkpointer.reload()
            found = [checkpoint.step for checkpoint in checkpointer.checkpoints]
            if found != [last]:
                raise interface.VerificationError(
                    f"only step {last} should be there; there is {found}"
                )
            context.prepare_load("load", context.path / "steps")
            with metrics.measure("load", num_bytes=num_bytes):
                loaded = jax.block_until_ready(checkpointer.load(last, saving.load_target(tree)))
        context.verify(loaded)
        return interface.TestResult(metrics=metrics)


def _cancel(metrics: Metrics, checkpointer: Any) -> None:
    """Cancels, as often as it takes: Orbax deletes a folder that its save may still write to."""
    # What it takes is part of what a cancellation costs, and is noted in the record.
    for tries in range(_MOST_TRIES):
        try:
            checkpointer.cancel(step=_STEP)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or tries + 1 == _MOST_TRIES:
                raise
            metrics.notes["cancel"] = [f"Orbax cancelled at try {tries + 2}; before that: {error}"]
        else:
            return
