"""Steps of a training run, saved with Orbax's v0 `CheckpointManager`; restore of the last one."""

from __future__ import annotations

import dataclasses
from typing import Any

from orbax_bench_core.authoring import (
    LATER,
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    VerificationError,
    benchmark_options,
)
from orbax_bench_core.benchmarks.support.needs import require_tree
from orbax_bench_core.benchmarks.support.options import BoundedOptions, delete_if_scarce
from orbax_bench_core.benchmarks.support.v0 import (
    measure_step,
    open_checkpoint_manager,
    restore_target,
)
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
    """

    save_interval_steps: Sweepable[int] = 1
    max_to_keep: Sweepable[int] = 1
    train_steps: Sweepable[int] = 1
    async_enabled: Sweepable[bool] = dataclasses.field(default=True, metadata=LATER)

    least = {"save_interval_steps": 1, "max_to_keep": 1, "train_steps": 1}


@benchmark_options(CheckpointManagerOptions)
class CheckpointManager(BenchmarksGenerator[CheckpointManagerOptions]):
    """Measures `save_blocking`, `save_background` and `save` of each step, and one `restore`.

    A step that the manager passes over is `skip`, and a save that is not asynchronous has no
    `save_background`. Each checkpoint holds the tree, a JSON item and
    the state of a NumPy random generator; all three are verified outside the clock.
    """

    def test_fn(self, context: TestContext[CheckpointManagerOptions]) -> TestResult:
        """Offers every step to the manager, and restores the last that it saved."""
        import jax
        import numpy as np
        import orbax.checkpoint as ocp

        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        tree, directory = require_tree(context, "checkpoint_manager"), context.path / "steps"
        num_bytes, target = tree_bytes(tree), restore_target(tree)
        generator = np.random.RandomState(0).get_state()
        arguments = ocp.args.Composite(
            pytree=ocp.args.StandardSave(tree),
            json_item=ocp.args.JsonSave(_JSON),
            np_random_key=ocp.args.NumpyRandomKeySave(generator),
        )
        with open_checkpoint_manager(
            directory,
            save_interval_steps=options.save_interval_steps,
            max_to_keep=options.max_to_keep,
            enable_async_checkpointing=options.async_enabled,
        ) as manager:
            saved = [
                step
                for step in range(options.train_steps)
                if measure_step(
                    metrics,
                    context,
                    manager,
                    step,
                    tree=tree,
                    arguments=arguments,
                    directory=directory,
                    asynchronous=options.async_enabled,
                )
            ]
            _check_steps(manager, saved, options)
            delete_if_scarce(tree)
            arguments = ocp.args.Composite(
                pytree=ocp.args.StandardRestore(target),
                json_item=ocp.args.JsonRestore(),
                np_random_key=ocp.args.NumpyRandomKeyRestore(),
            )
            context.prepare_load("restore", directory / str(saved[-1]))
            with metrics.measure("restore", num_bytes=num_bytes):
                restored = manager.restore(saved[-1], args=arguments)
                jax.block_until_ready(restored["pytree"])
        context.verify(restored["pytree"])
        context.verify(
            {"json_item": restored["json_item"], "np_random_key": restored["np_random_key"]},
            {"json_item": _JSON, "np_random_key": generator},
            against="saved",
        )
        return TestResult(metrics=metrics)


def _check_steps(manager: Any, saved: list[int], options: CheckpointManagerOptions) -> None:
    expected, found = saved[-options.max_to_keep :], sorted(manager.all_steps())
    if found != expected:
        raise VerificationError(f"the manager should hold the steps {expected}; it holds {found}")
