"""Deletion of checkpoints, with one thread or several."""

from __future__ import annotations

import dataclasses

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    UnmetNeed,
    benchmark_options,
)
from orbax_bench_core.benchmarks.support.needs import require_tree
from orbax_bench_core.benchmarks.support.options import BoundedOptions
from orbax_bench_core.benchmarks.support.v0 import (
    measure_step,
    open_checkpoint_manager,
    restore_target,
)
from orbax_bench_core.measure import Metrics

_FEWEST_KEPT = 2


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
    """

    save_interval_steps: Sweepable[int] = 1
    max_to_keep: Sweepable[int] = 1
    train_steps: Sweepable[int] = 5
    num_deletion_threads: Sweepable[int] = 1

    least = {
        "save_interval_steps": 1,
        "max_to_keep": 1,
        "train_steps": 2,
        "num_deletion_threads": 1,
    }


@benchmark_options(DeleterOptions)
class Deleter(BenchmarksGenerator[DeleterOptions]):
    """Measures, for each step but the first, the save and the `delete` of the one saved before.

    The saves give `save_blocking`, `save_background` and `save`. What the manager deletes by itself
    shows in the `7_overhead/delete_standard_s` of `save_background`. The last checkpoint is
    restored and verified outside the clock.
    """

    def test_fn(self, context: TestContext[DeleterOptions]) -> TestResult:
        """Saves step by step, and deletes behind itself."""
        import orbax.checkpoint as ocp

        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        tree, directory = require_tree(context, "deleter"), context.path / "steps"
        _require_deletable(options)
        arguments = ocp.args.Composite(
            pytree=ocp.args.StandardSave(tree), json_item=ocp.args.JsonSave({"a": 1})
        )
        with open_checkpoint_manager(
            directory,
            save_interval_steps=options.save_interval_steps,
            max_to_keep=options.max_to_keep,
            num_deletion_threads=options.num_deletion_threads,
        ) as manager:
            saved: list[int] = []
            for step in range(options.train_steps):
                if not measure_step(
                    metrics,
                    context,
                    manager,
                    step,
                    tree=tree,
                    arguments=arguments,
                    directory=directory,
                ):
                    continue
                if saved and saved[-1] in manager.all_steps():
                    with metrics.measure("delete", num_bytes=tree_bytes(tree)):
                        manager.delete(saved[-1])
                saved.append(step)
            if context.verifier is not None:
                target = ocp.args.StandardRestore(restore_target(tree))
                restored = manager.restore(saved[-1], args=ocp.args.Composite(pytree=target))
                context.verify(restored["pytree"])
        return TestResult(metrics=metrics)


def _require_deletable(options: DeleterOptions) -> None:
    saved = len(range(0, options.train_steps, options.save_interval_steps))
    if saved < _FEWEST_KEPT or options.max_to_keep < _FEWEST_KEPT:
        raise UnmetNeed(
            "deleter needs a checkpoint that the manager has not deleted by itself: set "
            "max_to_keep to 2 or more, and train_steps so that 2 or more are saved; with "
            f"max_to_keep: {options.max_to_keep}, train_steps: {options.train_steps} and "
            f"save_interval_steps: {options.save_interval_steps} there is none"
        )
