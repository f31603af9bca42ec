"""The framework comparison: save and load the same bytes with two frameworks, in turn."""

from typing import Any

from kfp import dsl

from orbax_bench_pipelines.placement import Placement
from orbax_bench_pipelines.steps import judge, make_checkpoint, measure_points
from orbax_bench_pipelines.tpu import SliceShape


def build(placement: Placement) -> Any:
    """Returns the pipeline, placed.

    Args:
        placement: Where its steps run.
    """

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

        placement.on_each_slice(output_directory, on_slice)

    return framework_comparison
