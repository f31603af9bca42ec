"""Training that saves at an interval with Orbax's `CheckpointManager`: the tail of its steps."""

from __future__ import annotations

import dataclasses
from time import perf_counter
from typing import Any

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    VerificationError,
    benchmark_options,
)
from orbax_bench_core.benchmarks.support.needs import require_one_process, require_tree
from orbax_bench_core.benchmarks.support.options import BoundedOptions
from orbax_bench_core.benchmarks.support.v0 import open_checkpoint_manager, restore_target
from orbax_bench_core.measure import Metrics, tail_of_steps

# The first step compiles; the next ones still find cold caches.
_WARM_UP_STEPS = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointIntervalOptions(BoundedOptions):
    """Options of `checkpoint_interval`.

    Attributes:
        save_interval_steps: Save every so many steps, and the first one.
        enable_async_checkpointing: Save in the background; otherwise a step waits for all of its
            save.
        train_steps: How many steps to train.
        matrix_size: Side of the square matrices that each device multiplies in a step: 2 *
            matrix_size^3 operations. The default takes milliseconds on a CPU; an accelerator needs
            thousands.
        max_to_keep: How many of the latest checkpoints to keep.
    """

    save_interval_steps: Sweepable[int] = 10
    enable_async_checkpointing: Sweepable[bool] = True
    train_steps: Sweepable[int] = 50
    matrix_size: Sweepable[int] = 384
    max_to_keep: Sweepable[int] = 1

    least = {"save_interval_steps": 1, "train_steps": 2, "matrix_size": 1, "max_to_keep": 1}


@benchmark_options(CheckpointIntervalOptions)
class CheckpointInterval(BenchmarksGenerator[CheckpointIntervalOptions]):
    """Measures `train`, all steps with their saves; `save_end`, until the last one is committed.

    Beside the time of `train` stand number, median, mean, 99th percentile and longest of its steps,
    each with the call that saves after it, and the share of the time that went beyond their median.
    A save that finds the one before it under way waits for that. Then it measures one `restore` of
    the last checkpoint, which is verified outside the clock: training went on in the buffers that
    were saved.
    """

    def test_fn(self, context: TestContext[CheckpointIntervalOptions]) -> TestResult:
        """Trains and saves, and restores the last checkpoint."""
        import jax
        import orbax.checkpoint as ocp

        from orbax_bench_core.benchmarks.support.training import Training
        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        require_one_process("checkpoint_interval")
        tree, directory = require_tree(context, "checkpoint_interval"), context.path / "steps"
        target = restore_target(tree)
        last = (options.train_steps - 1) // options.save_interval_steps
        last *= options.save_interval_steps
        training = Training(tree, matrix_size=options.matrix_size)
        training.steps(_WARM_UP_STEPS)
        with open_checkpoint_manager(
            directory,
            save_interval_steps=options.save_interval_steps,
            max_to_keep=options.max_to_keep,
            enable_async_checkpointing=options.enable_async_checkpointing,
        ) as manager:
            with metrics.measure("train"):
                times = _train(training, manager, options.train_steps, last)
            with metrics.measure("save_end"):
                manager.wait_until_finished()
            for reading in tail_of_steps(times):
                metrics.record("train", reading.metric, reading.value)
            _check_steps(manager, last, options)
            del training
            context.prepare_load("restore", directory / str(last))
            with metrics.measure("restore", num_bytes=tree_bytes(tree)):
                restored = jax.block_until_ready(
                    manager.restore(last, args=ocp.args.StandardRestore(target))
                )
        context.verify(restored)
        return TestResult(metrics=metrics)


def _train(training: Any, manager: Any, steps: int, last: int) -> list[float]:
    """Trains, offers every step to the manager, and returns the seconds of each.

    Before the last step that is saved the arrays are set back to the values that a restore is
    compared with, which is in no step's time.
    """
    import orbax.checkpoint as ocp

    times = []
    for step in range(steps):
        (seconds,) = training.steps(1)
        if step == last:
            training.restart()
        begun = perf_counter()
        manager.save(step, args=ocp.args.StandardSave(training.state))
        times.append(seconds + perf_counter() - begun)
    return times


def _check_steps(manager: Any, last: int, options: CheckpointIntervalOptions) -> None:
    saved = list(range(0, options.train_steps, options.save_interval_steps))
    expected, found = saved[-options.max_to_keep :], sorted(manager.all_steps())
    if found != expected or found[-1] != last:
        raise VerificationError(f"the manager should hold the steps {expected}; it holds {found}")
