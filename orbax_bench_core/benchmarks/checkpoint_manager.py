"""Steps saved, kept and deleted by Orbax's v0 `CheckpointManager`."""

import contextlib
import dataclasses
import functools
from typing import Any, Literal

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support import replicas, saving
from orbax_bench_core.benchmarks.support.needs import (
    require_arrays,
    require_orbax_module,
    require_tree,
)
from orbax_bench_core.benchmarks.support.options import BoundedOptions, delete_if_scarce, later
from orbax_bench_core.files import AnyPath
from orbax_bench_core.measure import Metrics

_JSON = {"a": 1, "b": "test"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointManagerOptions(BoundedOptions):
    """Options of `checkpoint_manager`.

    Attributes:
        save_interval_steps: Save every so many steps, and the first one.
        max_to_keep: How many of the latest checkpoints to keep.
        train_steps: How many steps to offer to the manager.
        async_enabled: Save in the background; otherwise all of a save blocks.
        keep_period: Also keep every step that is a multiple of this; null keeps no other.
        best_fn: Keep the best checkpoints by a loss that is saved with each, in place of the
            latest: `min` those of the smallest loss, `max` of the largest; null goes by age.
        lightweight_initialize: Open the manager once more, over all checkpoints that it kept, as
            after a restart: true without reading the metadata of each, false with. Null does not
            open it again.
    """

    save_interval_steps: interface.Sweepable[int] = 1
    max_to_keep: interface.Sweepable[int] = 1
    train_steps: interface.Sweepable[int] = 1
    async_enabled: interface.Sweepable[bool] = dataclasses.field(
        default=True, metadata=interface.LATER
    )
    keep_period: interface.Sweepable[int | None] = later(None)
    best_fn: interface.Sweepable[Literal["min", "max"] | None] = later(None)
    lightweight_initialize: interface.Sweepable[bool | None] = later(None)

    least = {"save_interval_steps": 1, "max_to_keep": 1, "train_steps": 1}


@interface.benchmark_options(CheckpointManagerOptions)
class CheckpointManager(interface.BenchmarksGenerator[CheckpointManagerOptions]):
    """Measures `save_blocking`, `save_background` and `save` of each step, and one `restore`.

    A step that the manager passes over is `skip`, and a save that is not asynchronous has no
    `save_background`. With `lightweight_initialize` also `create_checkpoint_manager`, over the
    checkpoints that were kept. Each checkpoint holds the tree, a JSON item and the state of a NumPy
    random generator; all three are verified outside the clock.
    """

    def test_fn(
        self, context: interface.TestContext[CheckpointManagerOptions]
    ) -> interface.TestResult:
        """Offers every step to the manager, and restores the last that it saved."""
        import jax
        import numpy as np
        import orbax.checkpoint as ocp

        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        tree, directory = require_tree(context, "checkpoint_manager"), context.path / "steps"
        num_bytes, target = tree_bytes(tree), saving.restore_target(tree)
        generator = np.random.RandomState(0).get_state()
        best: dict[str, Any] = {}
        if options.best_fn is not None:
            best = {"best_fn": saving.LOSS_OF, "best_mode": options.best_fn}

        def arguments(state: Any) -> Any:
            return ocp.args.Composite(
                pytree=ocp.args.StandardSave(state),
                json_item=ocp.args.JsonSave(_JSON),
                np_random_key=ocp.args.NumpyRandomKeySave(generator),
            )

        opened = functools.partial(
            saving.open_checkpoint_manager,
            directory,
            save_interval_steps=options.save_interval_steps,
            max_to_keep=options.max_to_keep,
            enable_async_checkpointing=options.async_enabled,
            keep_period=options.keep_period,
            lightweight_initialize=bool(options.lightweight_initialize),
            **best,
        )
        with opened() as manager:
            saved = []
            for step in range(options.train_steps):
                more: dict[str, Any] = {"asynchronous": options.async_enabled}
                if best:
                    more["metrics"] = saving.loss_at(step)
                offered = (metrics, context, manager, step, tree, arguments)
                saved += [step] * saving.measure_step(*offered, **more)
            kept = _kept(options, saved)
            saving.check_steps(manager, kept)
            last = kept[-1]
            delete_if_scarce(tree)
            wanted = ocp.args.Composite(
                pytree=ocp.args.StandardRestore(target),
                json_item=ocp.args.JsonRestore(),
                np_random_key=ocp.args.NumpyRandomKeyRestore(),
            )
            context.prepare_load("restore", directory / str(last))
            with metrics.measure("restore", num_bytes=num_bytes):
                restored = manager.restore(last, args=wanted)
                jax.block_until_ready(restored["pytree"])
        if options.lightweight_initialize is not None:
            with metrics.measure("create_checkpoint_manager"):
                reopened = opened()
            with reopened as manager:
                saving.check_steps(manager, kept)
        context.verify(restored["pytree"])
        context.verify(
            {"json_item": restored["json_item"], "np_random_key": restored["np_random_key"]},
            {"json_item": _JSON, "np_random_key": generator},
            against="saved",
        )
        return interface.TestResult(metrics=metrics)


def _kept(options: CheckpointManagerOptions, saved: list[int]) -> list[int]:
    """Returns the steps that a manager should hold at the end, in order."""
    if options.best_fn is None:
        kept = saved[-options.max_to_keep :]
    else:
        kept = saving.best_steps(saved, options.best_fn, options.max_to_keep)
    period = options.keep_period
    of_period = [] if period is None else [step for step in saved if step % period == 0]
    return sorted({*kept, *of_period})


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointManagerPerfOptions(BoundedOptions):
    """Options of `checkpoint_manager_perf`.

    Attributes:
        use_ocdbt: Store arrays in OCDBT, a database of few files, rather than a folder per array.
        use_zarr3: Store arrays as Zarr v3 rather than v2.
        train_steps: How many steps to train; each is saved.
        enable_per_process_directory_creation: Have each process make a checkpoint of its own, of
            all shards that it holds, in a folder of its own, as local tiers do on local disks; such
            a tree has arrays alone.
    """

    use_ocdbt: interface.Sweepable[bool] = True
    use_zarr3: interface.Sweepable[bool] = False
    train_steps: interface.Sweepable[int] = 20
    enable_per_process_directory_creation: interface.Sweepable[bool] = later(False)

    least = {"train_steps": 1}


@interface.benchmark_options(CheckpointManagerPerfOptions)
class CheckpointManagerPerf(interface.BenchmarksGenerator[CheckpointManagerPerfOptions]):
    """Measures a `train_step`, then `save_blocking`, `save_background` and `save`, for each step.

    The manager saves continuously and keeps the latest checkpoint only, so a save also deletes the
    one before. At last it measures one `restore`, which is verified outside the clock. A step
    updates every array in the buffer that it lies in; before the last save the arrays are set back
    to the values that a restore is compared with.
    """

    def test_fn(
        self, context: interface.TestContext[CheckpointManagerPerfOptions]
    ) -> interface.TestResult:
        """Trains, saves every step, and restores the last."""
        import jax
        import orbax.checkpoint as ocp

        from orbax_bench_core.benchmarks.support.training import Training
        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        tree, directory = require_tree(context, "checkpoint_manager_perf"), context.path / "steps"
        target = saving.restore_target(tree)
        # The handler is given, not implied: what is implied ignores both options.
        handled: dict[str, Any] = {}
        managed: dict[str, Any] = {}
        if options.enable_per_process_directory_creation:
            require_arrays(context, "checkpoint_manager_perf")
            directory /= f"process_{jax.process_index()}"
            handled, managed = _per_process()
        handler = ocp.PyTreeCheckpointHandler(
            use_ocdbt=options.use_ocdbt, use_zarr3=options.use_zarr3, **handled
        )
        training = Training(tree, matrix_size=1)
        training.steps(1)  # compiles
        last = options.train_steps - 1
        policies = require_orbax_module("checkpoint_managers", "checkpoint_manager_perf")
        with (
            replicas.hosts_in_step() if managed else contextlib.nullcontext(),
            saving.open_checkpoint_manager(
                directory,
                handlers={"pytree_item": handler},
                save_decision_policy=policies.ContinuousCheckpointingPolicy(),
                preservation_policy=policies.LatestN(n=1),
                **managed,
            ) as manager,
        ):
            for step in range(options.train_steps):
                with metrics.measure("train_step"):
                    training.steps(1)
                if step == last:
                    training.restart()
                # No name holds the state: the next step takes its buffers.
                saving.measure_step(
                    metrics,
                    context,
                    manager,
                    step,
                    training.state,
                    lambda state: ocp.args.Composite(pytree_item=ocp.args.PyTreeSave(state)),
                )
            saving.check_steps(manager, [last])
            del training
            arguments = ocp.args.Composite(pytree_item=saving.pytree_restore(target, item=target))
            context.prepare_load("restore", directory / str(last))
            with metrics.measure("restore", num_bytes=tree_bytes(tree)):
                restored = manager.restore(last, args=arguments)["pytree_item"]
                jax.block_until_ready(restored)
        context.verify(restored)
        return interface.TestResult(metrics=metrics)


def _per_process() -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the options of a handler and of its manager by which no process is the first one."""
    import jax
    import orbax.checkpoint as ocp

    alone = ocp.options.MultiprocessingOptions(primary_host=None)
    arrays = ocp.type_handlers.ArrayHandler(
        primary_host=None, replica_id=None, use_replica_parallel=False
    )
    registry = ocp.type_handlers.create_type_handler_registry((jax.Array, arrays))
    return (
        {"multiprocessing_options": alone, "type_handler_registry": registry},
        {"multiprocessing_options": alone, "enable_per_process_directory_creation": True},
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeleterOptions(BoundedOptions):
    """Options of `deleter`.

    Attributes:
        save_interval_steps: Save every so many steps, and the first one.
        max_to_keep: How many of the latest checkpoints the manager keeps. It deletes the others by
            itself, in `save_background`, and these cannot be deleted once more: for `delete` to be
            measured it must be 2 or more.
        train_steps: How many steps to offer to the manager.
        num_deletion_threads: How many threads delete the files of one checkpoint.
        enable_background_delete: Delete in a thread of its own: a save and `delete` leave it the
            work, and `close` waits for what is left of it.
        todelete_subdir: Move checkpoints to a folder of this name below the manager's directory,
            and delete nothing; Orbax ignores it on gs://. Null deletes.
        todelete_full_path: Move checkpoints to this path in the bucket, and delete nothing; needs
            gs://. Null deletes.
    """

    save_interval_steps: interface.Sweepable[int] = 1
    max_to_keep: interface.Sweepable[int] = 1
    train_steps: interface.Sweepable[int] = 5
    num_deletion_threads: interface.Sweepable[int] = 1
    enable_background_delete: interface.Sweepable[bool] = later(False)
    todelete_subdir: interface.Sweepable[str | None] = later(None)
    todelete_full_path: interface.Sweepable[str | None] = later(None)

    def is_valid(self) -> bool:
        """Orbax moves checkpoints to one place."""
        return self.todelete_subdir is None or self.todelete_full_path is None

    least = {
        "save_interval_steps": 1,
        "max_to_keep": 1,
        "train_steps": 2,
        "num_deletion_threads": 1,
    }


@interface.benchmark_options(DeleterOptions)
class Deleter(interface.BenchmarksGenerator[DeleterOptions]):
    """Measures, for each step but the first, the save and the `delete` of the one saved before.

    The saves give `save_blocking`, `save_background` and `save`. What the manager deletes by itself
    shows in the `7_overhead/delete_standard_s` of `save_background`. With
    `enable_background_delete` also `close`, which waits for the deletions. The last checkpoint is
    restored and verified outside the clock.
    """

    def test_fn(self, context: interface.TestContext[DeleterOptions]) -> interface.TestResult:
        """Saves step by step, and deletes behind itself."""
        import orbax.checkpoint as ocp

        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        tree, directory = require_tree(context, "deleter"), context.path / "steps"
        _require_deletable(options, directory)

        def arguments(state: Any) -> Any:
            items = {
                "pytree": ocp.args.StandardSave(state),
                "json_item": ocp.args.JsonSave({"a": 1}),
            }
            return ocp.args.Composite(**items)

        with saving.open_checkpoint_manager(
            directory,
            save_interval_steps=options.save_interval_steps,
            max_to_keep=options.max_to_keep,
            num_deletion_threads=options.num_deletion_threads,
            enable_background_delete=options.enable_background_delete,
            todelete_subdir=options.todelete_subdir,
            todelete_full_path=options.todelete_full_path,
        ) as manager:
            saved: list[int] = []
            for step in range(options.train_steps):
                if not saving.measure_step(metrics, context, manager, step, tree, arguments):
                    continue
                if saved and saved[-1] in manager.all_steps():
                    with metrics.measure("delete", num_bytes=tree_bytes(tree)):
                        manager.delete(saved[-1])
                saved.append(step)
            if context.verifier is not None:
                target = ocp.args.StandardRestore(saving.restore_target(tree))
                restored = manager.restore(saved[-1], args=ocp.args.Composite(pytree=target))
                context.verify(restored["pytree"])
            if options.enable_background_delete:
                with metrics.measure("close"):
                    manager.close()
        return interface.TestResult(metrics=metrics)


def _require_deletable(options: DeleterOptions, directory: AnyPath) -> None:
    for name in ("todelete_subdir", "todelete_full_path"):
        needs_bucket = name == "todelete_full_path"
        if getattr(options, name) is not None and needs_bucket != ("gs://" in str(directory)):
            raise interface.UnmetNeed(
                f"{name} needs an output directory {'on' if needs_bucket else 'outside'} gs://; "
                f"{str(directory)!r} is not"
            )
    saved = len(range(0, options.train_steps, options.save_interval_steps))
    if saved < 2 or options.max_to_keep < 2:
        raise interface.UnmetNeed(
            "deleter needs a checkpoint that the manager has not deleted by itself: set "
            "max_to_keep to 2 or more, and train_steps so that 2 or more are saved; with "
            f"max_to_keep: {options.max_to_keep}, train_steps: {options.train_steps} and "
            f"save_interval_steps: {options.save_interval_steps} there is none"
        )
