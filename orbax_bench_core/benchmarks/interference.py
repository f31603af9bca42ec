"""Training during which checkpoints are saved: what a save costs it."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import TYPE_CHECKING, Any

from orbax_bench_core import interface, measure
from orbax_bench_core.benchmarks.save_restore import SaveRestoreOptions, measure_save
from orbax_bench_core.benchmarks.support import needs, saving
from orbax_bench_core.benchmarks.support.options import BoundedOptions
from orbax_bench_core.measure import TIME, Metrics, Reading, tail_of_steps

if TYPE_CHECKING:
    from etils import epath

# The first step compiles; the next ones still find cold caches.
_WARM_UP_STEPS = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainInterferenceOptions(BoundedOptions, SaveRestoreOptions):
    """Options of `train_interference`, next to those of `save_restore`.

    What these say of loading holds for the load that verifies the save, which is not measured.

    Attributes:
        steps_before: Training steps measured before the save; all else is compared with them.
        steps_after: Training steps measured after the save.
        max_steps_during: Most training steps taken while the save runs; a longer save ends without
            training during it.
        matrix_size: Side of the square matrices that each device multiplies in a step: 2 *
            matrix_size^3 operations. The default takes milliseconds on a CPU; an accelerator needs
            thousands.
    """

    steps_before: interface.Sweepable[int] = 30
    steps_after: interface.Sweepable[int] = 30
    max_steps_during: interface.Sweepable[int] = 10_000
    matrix_size: interface.Sweepable[int] = 384

    least = {"steps_before": 1, "steps_after": 0, "max_steps_during": 1, "matrix_size": 1}


@interface.benchmark_options(TrainInterferenceOptions)
class TrainInterference(interface.BenchmarksGenerator[TrainInterferenceOptions]):
    """Measures `steps_before`, `save` during `steps_during`, and `steps_after`.

    The time lost to the save, the steps lost and the blocked time stand with `save`; number, median
    and mean of the steps, and their inflation, with the phase. `save_blocking`, `save_background`
    and `save_durable` are those of `save_restore`. Training pauses in `save_blocking`, which is all
    of a save that is not asynchronous, and from the end of `save` to that of `save_durable`.

    What is saved is the state of the training itself, whose buffers the next step overwrites. It is
    loaded back and verified outside the clock.
    """

    def test_fn(
        self, context: interface.TestContext[TrainInterferenceOptions]
    ) -> interface.TestResult:
        """Trains, saves, trains on, and verifies what was saved."""
        from orbax_bench_core.state import orbax_api

        options = context.options
        needs.require_arrays_of_all(context, "train_interference")
        metrics, path, target = Metrics(), context.path / "ckpt", saving.load_target(context.pytree)
        with options.orbax_context():
            _train_and_save(metrics, context, path)
            if context.verifier is not None:
                context.verify(orbax_api.load(path, target))
        return interface.TestResult(metrics=metrics)


def _train_and_save(
    metrics: Metrics, context: interface.TestContext[TrainInterferenceOptions], path: epath.Path
) -> None:
    from orbax_bench_core.benchmarks.support.training import Training

    options = context.options
    training = Training(context.pytree, matrix_size=options.matrix_size)

    def measured(operation: str, take_steps: Callable[[], list[float]]) -> list[float]:
        with metrics.measure(operation, options.collectors):
            return take_steps()

    def steps(operation: str, count: int) -> list[float]:
        return measured(operation, lambda: training.steps(count)) if count else []

    def steps_during(going: Callable[[], bool]) -> list[float]:
        most = options.max_steps_during
        return measured("steps_during", lambda: training.steps_while(going, most=most))

    # All training is in a thread of its own, so that this one sees the save end when it ends, and
    # not when a step does.
    with ThreadPoolExecutor(1, "train") as trainer:
        trainer.submit(training.steps, _WARM_UP_STEPS).result()
        before = trainer.submit(steps, "steps_before", options.steps_before).result()
        training.restart()  # what is saved must equal what it is verified against
        beside = _Beside(trainer, steps_during)
        measure_save(metrics, context, path, training.state, meanwhile=beside)
        during = beside.times()
        after = trainer.submit(steps, "steps_after", options.steps_after).result()
    _summarize(metrics, before, during, after)


class _Beside(contextlib.AbstractContextManager[None]):
    """Trains in another thread for as long as the context is open."""

    def __init__(
        self, trainer: ThreadPoolExecutor, train: Callable[[Callable[[], bool]], list[float]]
    ) -> None:
        self._trainer = trainer
        self._train = train
        self._ended = threading.Event()
        self._future: Future[list[float]] | None = None

    def __enter__(self) -> None:
        self._future = self._trainer.submit(self._train, lambda: not self._ended.is_set())

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def times(self) -> list[float]:
        """Waits for the last step; returns the seconds of each, none if it was never entered."""
        return [] if self._future is None else self._future.result()


def _summarize(
    metrics: Metrics, before: list[float], during: list[float], after: list[float]
) -> None:
    seconds = {
        sample.operation: sample.value for sample in metrics.samples if sample.metric == TIME
    }
    _record(metrics, "steps_before", measure.interference_of_steps(before))
    _record(metrics, "steps_during", measure.interference_of_steps(during, beside=before))
    _record(metrics, "steps_after", measure.interference_of_steps(after, beside=before))
    cost = measure.interference_of_save(
        before,
        during,
        blocked_s=seconds["save_blocking"],
        background_s=seconds.get("save_background", 0.0),
    )
    _record(metrics, "save", cost)


def _record(metrics: Metrics, operation: str, readings: Sequence[Reading]) -> None:
    for reading in readings:
        metrics.record(operation, reading.metric, reading.value)


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

    save_interval_steps: interface.Sweepable[int] = 10
    enable_async_checkpointing: interface.Sweepable[bool] = True
    train_steps: interface.Sweepable[int] = 50
    matrix_size: interface.Sweepable[int] = 384
    max_to_keep: interface.Sweepable[int] = 1

    least = {"save_interval_steps": 1, "train_steps": 2, "matrix_size": 1, "max_to_keep": 1}


@interface.benchmark_options(CheckpointIntervalOptions)
class CheckpointInterval(interface.BenchmarksGenerator[CheckpointIntervalOptions]):
    """Measures `train`, all steps with their saves; `save_end`, until the last one is committed.

    Beside the time of `train` stand number, median, mean, 99th percentile and longest of its steps,
    each with the call that saves after it, and the share of the time that went beyond their median.
    A save that finds the one before it under way waits for that. Then it measures one `restore` of
    the last checkpoint, which is verified outside the clock: training went on in the buffers that
    were saved.
    """

    def test_fn(
        self, context: interface.TestContext[CheckpointIntervalOptions]
    ) -> interface.TestResult:
        """Trains and saves, and restores the last checkpoint."""
        import jax
        import orbax.checkpoint as ocp

        from orbax_bench_core.benchmarks.support.training import Training
        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        needs.require_one_process("checkpoint_interval")
        tree, directory = needs.require_tree(context, "checkpoint_interval"), context.path / "steps"
        target = saving.restore_target(tree)
        saved = list(range(0, options.train_steps, options.save_interval_steps))
        last = saved[-1]
        training = Training(tree, matrix_size=options.matrix_size)
        training.steps(_WARM_UP_STEPS)
        with saving.open_checkpoint_manager(
            directory,
            save_interval_steps=options.save_interval_steps,
            max_to_keep=options.max_to_keep,
            enable_async_checkpointing=options.enable_async_checkpointing,
        ) as manager:
            with metrics.measure("train"):
                times = _train_and_offer(training, manager, options.train_steps, last)
            with metrics.measure("save_end"):
                manager.wait_until_finished()
            _record(metrics, "train", tail_of_steps(times))
            saving.check_steps(manager, saved[-options.max_to_keep :])
            del training
            context.prepare_load("restore", directory / str(last))
            with metrics.measure("restore", num_bytes=tree_bytes(tree)):
                restored = jax.block_until_ready(
                    manager.restore(last, args=ocp.args.StandardRestore(target))
                )
        context.verify(restored)
        return interface.TestResult(metrics=metrics)


def _train_and_offer(training: Any, manager: Any, steps: int, last: int) -> list[float]:
    """Trains, offers every step to the manager, and returns the seconds of each."""
    # Before the last step that is saved the arrays are set back to the values that a restore is
    # compared with, which is in no step's time.
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
