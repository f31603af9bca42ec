"""The framework comparison: save and load the same bytes with two frameworks, in turn."""

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

    @dsl.pipeline(name="orbax-bench-framework-comparison")
    def framework_comparison(
        suite: str,
        output_directory: str,
        arms: str = "",
        fixture: str = "",
        remove_repeated_dir: bool = True,
    ) -> None:
        """Says how many times as long one framework takes as another to save and load the same.

        Both are measured within one step, in blocks of random order, so on one machine. The answer
        is a ratio with its interval, and no reason to fail: whoever is slower, the pipeline
        succeeds.

        Args:
            suite: The suite file, word for word; with `arms`, unless they are given here.
            output_directory: The run directory, local or gs://, reachable from every step.
            arms: An `arms` block, as YAML, for a suite that has none, such as `{baseline:
                {generator: pytorch_dcp}, candidate: {generator: save_restore}}`.
            fixture: A suite file to generate the checkpoint from that load-only points read.
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
                arms=arms,
                remove_repeated_dir=remove_repeated_dir,
                measure_limits=False,
            )
            judge(placement, output_directory=directory, samples=samples)

        on_each_slice(placement, output_directory, on_slice)

    return framework_comparison


def conclude(finished: Finished, console: "Console") -> int:
    """Shows how many times as long the candidate takes; only what could not be measured fails."""
    from orbax_bench_core.analysis.verdicts import read_verdicts, verdicts_document
    from orbax_bench_core.cli.measurement import EXIT_FAILED
    from orbax_bench_core.config import UserError
    from orbax_bench_core.document import print_document
    from orbax_bench_core.records import RunDirectory

    try:
        verdicts = read_verdicts(RunDirectory(finished.directory))
    except UserError:
        return EXIT_FAILED  # the steps have said why there are none
    print_document(verdicts_document(verdicts), console)
    return EXIT_FAILED if any(point.unmeasured for point in verdicts.points) else 0


FRAMEWORK_COMPARISON = Pipeline(
    name="framework-comparison",
    summary="Says how many times as long one framework takes as another for the same bytes.",
    parameters={"arms": "", "fixture": "", "remove_repeated_dir": True},
    build=build,
    conclude=conclude,
    takes_arms=True,
)
