"""The regression pipeline: measure both arms, judge, store what passes, fail on a regression."""

from collections.abc import Callable
from typing import Any

from kfp import dsl

from orbax_bench_components.aggregate import aggregate
from orbax_bench_components.compare_baseline import compare_baseline
from orbax_bench_components.enforce_verdict import enforce_verdict
from orbax_bench_components.plan_sweep import plan_sweep
from orbax_bench_components.publish_baseline import publish_baseline
from orbax_bench_components.run_sweep_point import run_sweep_point
from orbax_bench_pipelines.placement import Placement
from orbax_bench_pipelines.tpu import SliceShape


def build(placement: Placement) -> Any:
    """Returns the pipeline, placed.

    Args:
        placement: Where its steps run.
    """

    @dsl.pipeline(name="orbax-bench-regression")
    def regression(
        suite: str,
        output_directory: str,
        arms: str = "",
        baseline: str = "",
        registry: str = "",
        promote: bool = False,
        allow_inconclusive: bool = True,
        remove_repeated_dir: bool = True,
    ) -> None:
        """Says whether a candidate saves and loads slower than a baseline, and fails if it does.

        Each point is measured in both arms within one step, so on one machine.

        Args:
            suite: The suite file, word for word; with `arms`, unless they are given here or a
                stored baseline is compared with.
            output_directory: The run directory, local or gs://, reachable from every step.
            arms: An `arms` block, as YAML, for a suite that has none; `{}` compares it with itself.
            baseline: A stored baseline to compare with in place of arms, which can only warn.
            registry: Where to capture a run that does not regress; empty for nowhere.
            promote: Whether what is captured becomes the baseline of its points.
            allow_inconclusive: Whether INCONCLUSIVE leaves the pipeline successful.
            remove_repeated_dir: Whether checkpoint data is deleted after each operation.
        """
        placement.on_each_slice(
            lambda shape: _judge_on(shape, placement),
            suite=suite,
            output_directory=output_directory,
            arms=arms,
            baseline=baseline,
            registry=registry,
            promote=promote,
            allow_inconclusive=allow_inconclusive,
            remove_repeated_dir=remove_repeated_dir,
        )

    return regression


def _judge_on(shape: SliceShape | None, placement: Placement) -> Callable[..., None]:
    def add_steps(
        suite: str,
        output_directory: str,
        arms: str,
        baseline: str,
        registry: str,
        promote: bool,
        allow_inconclusive: bool,
        remove_repeated_dir: bool,
    ) -> None:
        plan = placement.place(
            plan_sweep(suite=suite, output_directory=output_directory, arms=arms)
        )
        plan.set_caching_options(False)
        name = "points" if shape is None else f"points-{shape.name}"
        with dsl.ParallelFor(plan.output, name=name, parallelism=placement.parallelism) as point:
            measured = run_sweep_point(
                point=point,
                output_directory=output_directory,
                remove_repeated_dir=remove_repeated_dir,
                measure_limits=False,
            )
            placement.measure_on(shape, measured)
        together = aggregate(
            records=dsl.Collected(measured.outputs["records"]), output_directory=output_directory
        )
        placement.place(together).set_caching_options(False)
        compared = compare_baseline(
            output_directory=output_directory,
            baseline=baseline,
            samples=together.outputs["samples"],
        )
        placement.place(compared).set_caching_options(False)
        with (
            dsl.If(compared.outputs["Output"] != "REGRESSION", name="not-slower"),
            dsl.If(registry != "", name="has-registry"),
        ):
            published = publish_baseline(
                output_directory=output_directory,
                registry=registry,
                promote=promote,
                samples=together.outputs["samples"],
            )
            placement.place(published).set_caching_options(False)
        enforced = enforce_verdict(
            verdict=compared.outputs["Output"],
            allow_inconclusive=allow_inconclusive,
            verdicts=compared.outputs["verdicts"],
        )
        placement.place(enforced).set_caching_options(False)

    return add_steps
