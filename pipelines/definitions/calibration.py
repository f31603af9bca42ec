"""The calibration pipeline: compare a suite with itself, count false alarms, measure the noise."""

from typing import TYPE_CHECKING, Any

from orbax_bench_pipelines.definitions.common import (
    Finished,
    Pipeline,
    judge,
    make_checkpoint,
    measure_points,
    on_each_slice,
)
from orbax_bench_pipelines.targets import Placement, SliceShape

if TYPE_CHECKING:
    from rich.console import Console


def build(placement: Placement) -> Any:
    """Returns the pipeline, placed."""
    from kfp import dsl

    from orbax_bench_components.calibrate import calibrate

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

        on_each_slice(placement, output_directory, on_slice)

    return calibration


def conclude(finished: Finished, console: "Console") -> int:
    """Shows how often identical arms were told apart and how noisy they are.

    A false alarm is what is counted here, so it fails nothing.
    """
    from orbax_bench_core.analysis.noise import calibration_of
    from orbax_bench_core.cli.measurement import EXIT_FAILED

    if finished.failure is not None:
        return EXIT_FAILED
    earlier = finished.arguments["earlier"]
    calibration_of([finished.directory, *([earlier] if earlier else [])]).show(console)
    return 0


CALIBRATION = Pipeline(
    name="calibration",
    summary="Compares a suite with itself: false alarms of the gate, and noise of the place.",
    parameters={"fixture": "", "earlier": "", "passport": "", "remove_repeated_dir": True},
    build=build,
    conclude=conclude,
    paths=("earlier", "passport"),
)
