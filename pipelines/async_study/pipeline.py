"""The async study: save several sizes blocking and in the background, and set them side by side."""

from typing import Any

from kfp import dsl

from orbax_bench_components.study_async import study_async
from orbax_bench_pipelines.placement import Placement
from orbax_bench_pipelines.steps import make_checkpoint, measure_points
from orbax_bench_pipelines.tpu import SliceShape


def build(placement: Placement) -> Any:
    """Returns the pipeline, placed.

    Args:
        placement: Where its steps run.
    """

    @dsl.pipeline(name="orbax-bench-async-study")
    def async_study(
        suite: str,
        output_directory: str,
        fixture: str = "",
        remove_repeated_dir: bool = True,
    ) -> None:
        """Says what share of the blocked time saving in the background saves, by size of the model.

        Args:
            suite: The suite file, word for word; it sweeps `async_enabled: [false, true]` over
                checkpoints of several sizes.
            output_directory: The run directory, local or gs://, reachable from every step.
            fixture: A suite file to generate the checkpoint from that load-only points read.
            remove_repeated_dir: Whether checkpoint data is deleted after each repeat.
        """
        checkpoint = make_checkpoint(placement, suite=suite, fixture=fixture)

        def on_slice(shape: SliceShape | None, directory: Any) -> None:
            samples = measure_points(
                placement,
                shape,
                suite=suite,
                output_directory=directory,
                checkpoint=checkpoint,
                remove_repeated_dir=remove_repeated_dir,
                measure_limits=False,
            )
            study = study_async(output_directory=directory, samples=samples)
            placement.place(study).set_caching_options(False)

        placement.on_each_slice(output_directory, on_slice)

    return async_study
