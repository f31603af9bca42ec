"""Deletes checkpoints, with one thread or several."""

from __future__ import annotations

import dataclasses

from orbax_bench_core.authoring import (
    BenchmarkOptions,
    BenchmarksGenerator,
    TestContext,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.measure import Metrics

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
        for name, fewest in _FEWEST.items():
            value = getattr(self, name)
            if isinstance(value, int) and value < fewest:
                raise ValueError(f"{name} must be {fewest} or more, got {value}")


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

        from orbax_bench_core.benchmarks import needs
        from orbax_bench_core.benchmarks.managing import measure_step, open_manager
        from orbax_bench_core.benchmarks.v0_saving import restore_target
        from orbax_bench_core.state.size import tree_bytes

        metrics, options = Metrics(), context.options
        assert isinstance(options, DeleterOptions)
        tree, directory = needs.tree(context, "deleter"), context.path / "steps"
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
            deleted = 0
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
                    deleted += 1
                saved.append(step)
            if not deleted:
                raise needs.UnmetNeed(
                    f"deleter had no checkpoint to delete: of the saved steps {saved} the manager "
                    f"had deleted each by itself; set max_to_keep above {options.max_to_keep} and "
                    "train_steps so that two steps are saved"
                )
            if context.verifier is not None:
                target = ocp.args.StandardRestore(restore_target(tree))
                restored = manager.restore(saved[-1], args=ocp.args.Composite(pytree=target))
                context.verify(restored["pytree"])
        return TestResult(metrics=metrics)
