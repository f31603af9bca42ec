"""The calibration pipeline: compare a suite with itself, count false alarms, measure the noise."""

from collections.abc import Callable
from typing import Any

from kfp import dsl

from orbax_bench_components.aggregate import aggregate
from orbax_bench_components.calibrate import calibrate
from orbax_bench_components.compare_baseline import compare_baseline
from orbax_bench_components.plan_sweep import plan_sweep
from orbax_bench_components.run_sweep_point import run_sweep_point
from orbax_bench_pipelines.placement import Placement
from orbax_bench_pipelines.tpu import SliceShape


def build(placement: Placement) -> Any:
    """Returns the pipeline, placed.

    Args:
        placement: Where its steps run.
    """

    @dsl.pipeline(name="orbax-bench-calibration")
    def calibration(
        suite: str,
        output_directory: str,
        earlier: str = "",
        passport: str = "",
        remove_repeated_dir: bool = True,
    ) -> None:
        """Says whether the gate keeps its word where this runs, and how noisy operations are there.

        Args:
            suite: The suite file, word for word, without arms.
            output_directory: The run directory, local or gs://, reachable from every step.
            earlier: A directory or pattern of earlier A/A runs to count in; empty for none.
            passport: Where to write the noise passport; empty for the artifact alone.
            remove_repeated_dir: Whether checkpoint data is deleted after each operation.
        """
        placement.on_each_slice(
            lambda shape: _calibrate_on(shape, placement),
            suite=suite,
            output_directory=output_directory,
            earlier=earlier,
            passport=passport,
            remove_repeated_dir=remove_repeated_dir,
        )

    return calibration


def _calibrate_on(shape: SliceShape | None, placement: Placement) -> Callable[..., None]:
    def add_steps(
        suite: str,
        output_directory: str,
        earlier: str,
        passport: str,
        remove_repeated_dir: bool,
    ) -> None:
        plan = placement.place(
            plan_sweep(suite=suite, output_directory=output_directory, arms="{}")
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
            output_directory=output_directory, samples=together.outputs["samples"]
        )
        placement.place(compared).set_caching_options(False)
        calibrated = calibrate(
            runs=[output_directory, earlier],
            save=passport,
            samples=together.outputs["samples"],
        )
        placement.place(calibrated).set_caching_options(False)

    return add_steps
