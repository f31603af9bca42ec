"""Training that saves every step with Orbax's `CheckpointManager`, in a chosen storage format."""

from __future__ import annotations

import dataclasses
from typing import Any

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.benchmarks.support.needs import require_orbax_module, require_tree
from orbax_bench_core.benchmarks.support.options import BoundedOptions
from orbax_bench_core.benchmarks.support.v0 import (
    measure_step,
    open_checkpoint_manager,
    restore_target,
)
from orbax_bench_core.measure import Metrics

_ITEM = "pytree_item"


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointManagerPerfOptions(BoundedOptions):
    """Options of `checkpoint_manager_perf`.

    Attributes:
        use_ocdbt: Store arrays in OCDBT, a database of few files, rather than a folder per array.
        use_zarr3: Store arrays as Zarr v3 rather than v2.
        train_steps: How many steps to train; each is saved.
    """

    use_ocdbt: Sweepable[bool] = True
    use_zarr3: Sweepable[bool] = False
    train_steps: Sweepable[int] = 20

    least = {"train_steps": 1}


@benchmark_options(CheckpointManagerPerfOptions)
class CheckpointManagerPerf(BenchmarksGenerator[CheckpointManagerPerfOptions]):
    """Measures a `train_step`, then `save_blocking`, `save_background` and `save`, for each step.

    The manager saves continuously and keeps the latest checkpoint only, so a save also deletes the
    one before. At last it measures one `restore`, which is verified outside the clock. A step
    updates every array in the buffer that it lies in; before the last save the arrays are set back
    to the values that a restore is compared with.
    """

    def test_fn(self, context: TestContext[CheckpointManagerPerfOptions]) -> TestResult:
        """Trains, saves every step, and restores the last."""
        import jax
        import orbax.checkpoint as ocp

        from orbax_bench_core.benchmarks.support.training import Training
        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        tree, directory = (
            require_tree(context, "checkpoint_manager_perf"),
            context.path / "steps",
        )
        target = restore_target(tree)
        # The handler is given, not implied: what is implied ignores both options.
        handler = ocp.PyTreeCheckpointHandler(
            use_ocdbt=options.use_ocdbt, use_zarr3=options.use_zarr3
        )
        training = Training(tree, matrix_size=1)
        training.steps(1)  # compiles
        last = options.train_steps - 1
        with open_checkpoint_manager(
            directory, handlers={_ITEM: handler}, **_policies()
        ) as manager:
            for step in range(options.train_steps):
                with metrics.measure("train_step"):
                    training.steps(1)
                if step == last:
                    training.restart()
                measure_step(
                    metrics,
                    context,
                    manager,
                    step,
                    tree=training.state,
                    arguments=ocp.args.Composite(**{_ITEM: ocp.args.PyTreeSave(training.state)}),
                    directory=directory,
                )
            _check_steps(manager, last)
            del training
            arguments = ocp.args.Composite(
                **{
                    _ITEM: ocp.args.PyTreeRestore(
                        target,
                        restore_args=ocp.checkpoint_utils.construct_restore_args(target),
                    )
                }
            )
            context.prepare_load("restore", directory / str(last))
            with metrics.measure("restore", num_bytes=tree_bytes(tree)):
                restored = jax.block_until_ready(manager.restore(last, args=arguments)[_ITEM])
        context.verify(restored)
        return TestResult(metrics=metrics)


def _policies() -> dict[str, Any]:
    name = "checkpoint_manager_perf"
    policies = require_orbax_module("checkpoint_managers", name)
    return {
        "save_decision_policy": policies.ContinuousCheckpointingPolicy(),
        "preservation_policy": policies.LatestN(n=1),
    }


def _check_steps(manager: Any, last: int) -> None:
    from orbax_bench_core.authoring import VerificationError

    found = sorted(manager.all_steps())
    if found != [last]:
        raise VerificationError(f"the manager should hold only step {last}; it holds {found}")
