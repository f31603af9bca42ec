"""Deletes checkpoints, with one thread or several."""

from __future__ import annotations

import dataclasses
from typing import cast

from orbax_bench_core.authoring import (
    BenchmarkOptions,
    BenchmarksGenerator,
    TestContext,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.benchmarks.support.options import check_least
from orbax_bench_core.measure import Metrics

_FEWEST_KEPT = 2
_FEWEST = {"save_interval_steps": 1, "max_to_keep": 1, "train_steps": 2, "num_deletion_threads": 1}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeleterOptions(BenchmarkOptions):
    """Options of `deleter`.

    Attributes:
        save_interval_steps: Save every so many steps, and the first one.
        max_to_keep: How many of the latest checkpoints the manager keeps. It deletes the others by
            itself, in `save_background`, and these cannot be deleted once more: for `delete` to be
            measured it must be 2 or more.
        train_steps: How many steps to offer to the manager.
        num_deletion_threads: How many threads delete the files of one checkpoint.
    """

    save_interval_steps: int | list[int] = 1
    max_to_keep: int | list[int] = 1
    train_steps: int | list[int] = 5
    num_deletion_threads: int | list[int] = 1

    def __post_init__(self) -> None:
        """Refuses numbers that leave nothing to delete.

        Raises:
            ValueError: A number is too small.
        """
        check_least(self, **_FEWEST)


@benchmark_options(DeleterOptions)
class Deleter(BenchmarksGenerator):
    """Measures, for each step but the first, the save and the `delete` of the one saved before.

    The saves give `save_blocking`, `save_background` and `save`. What the manager deletes by itself
    shows in the `7_overhead/delete_standard_s` of `save_background`. The last checkpoint is
    restored and verified outside the clock.
    """

    def test_fn(self, context: TestContext) -> TestResult:
        """Saves step by step, and deletes behind itself."""
        import orbax.checkpoint as ocp

        from orbax_bench_core.benchmarks.support import needs
        from orbax_bench_core.benchmarks.support.v0 import (
            measure_step,
            open_manager,
            restore_target,
        )
        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        assert isinstance(options, DeleterOptions)
        tree, directory = needs.tree(context, "deleter"), context.path / "steps"
        _check_needs(options)
        arguments = ocp.args.Composite(
            pytree=ocp.args.StandardSave(tree), json_item=ocp.args.JsonSave({"a": 1})
        )
        with open_manager(
            directory,
            save_interval_steps=options.save_interval_steps,
            max_to_keep=options.max_to_keep,
            num_deletion_threads=options.num_deletion_threads,
        ) as manager:
            saved: list[int] = []
            assert isinstance(options.train_steps, int)
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


def _check_needs(options: DeleterOptions) -> None:
    from orbax_bench_core.benchmarks.support.needs import UnmetNeed

    assert isinstance(options.train_steps, int)
    assert isinstance(options.save_interval_steps, int)
    saved = len(range(0, options.train_steps, options.save_interval_steps))
    if saved < _FEWEST_KEPT or cast("int", options.max_to_keep) < _FEWEST_KEPT:
        raise UnmetNeed(
            "deleter needs a checkpoint that the manager has not deleted by itself: set "
            "max_to_keep to 2 or more, and train_steps so that 2 or more are saved; with "
            f"max_to_keep: {options.max_to_keep}, train_steps: {options.train_steps} and "
            f"save_interval_steps: {options.save_interval_steps} there is none"
        )
