"""The calibration pipeline: compare a suite with itself, count false alarms, measure the noise."""

from typing import Any

from kfp import dsl

from orbax_bench_components.calibrate import calibrate
from orbax_bench_pipelines.placement import Placement
from orbax_bench_pipelines.steps import judge, make_checkpoint, measure_points
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
        fixture: str = "",
        earlier: str = "",
        passport: str = "",
        remove_repeated_dir: bool = True,
    ) -> None:
        """Says whether the gate keeps its word where this runs, and how noisy operations are there.

        Args:
            suite: The suite file, word for word, without arms.
            output_directory: The run directory, local or gs://, reachable from every step.
            fixture: A suite file to generate the checkpoint from that load-only points read.
            earlier: A directory or pattern of earlier A/A runs to count in; empty for none.
            passport: Where to write the noise passport; empty for the artifact alone.
            remove_repeated_dir: Whether checkpoint data is deleted after each operation.
        """
        checkpoint = make_checkpoint(placement, suite=suite, fixture=fixture)

        def on_slice(shape: SliceShape | None, directory: Any) -> None:
            samples = measure_points(
                placement,
                shape,
                suite=suite,
                output_directory=directory,
                checkpoint=checkpoint,
                arms="{}",
                remove_repeated_dir=remove_repeated_dir,
                measure_limits=False,
            )
            judge(placement, output_directory=directory, samples=samples)
            calibrated = calibrate(runs=[directory, earlier], save=passport, samples=samples)
            placement.place(calibrated).set_caching_options(False)

        placement.on_each_slice(output_directory, on_slice)

    return calibration
