"""The async study: save several sizes blocking and in the background, and set them side by side."""

from typing import TYPE_CHECKING, Any

from orbax_bench_pipelines.definitions.common import (
    Finished,
    Pipeline,
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

    from orbax_bench_components.study_async import study_async

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

        on_each_slice(placement, output_directory, on_slice)

    return async_study


def conclude(finished: Finished, console: "Console") -> int:
    """Shows what each size saves; repeats that failed, or no study at all, are a failure."""
    import pydantic

    from orbax_bench_core.analysis.async_study import AsyncStudy, study_document
    from orbax_bench_core.cli.measurement import EXIT_FAILED
    from orbax_bench_core.document import print_document
    from orbax_bench_core.records import STUDY_FILE, RunDirectory

    try:
        text = (RunDirectory(finished.directory).root / STUDY_FILE).read_bytes()
        study = AsyncStudy.model_validate_json(text)
    except (OSError, pydantic.ValidationError):
        return EXIT_FAILED
    print_document(study_document(study), console)
    sizes = [size for series in study.series for size in series.sizes]
    failed = sum(size.blocking.failed + size.background.failed for size in sizes)
    return EXIT_FAILED if failed else 0


ASYNC_STUDY = Pipeline(
    name="async-study",
    summary="Says what saving in the background saves, by the size of the model.",
    parameters={"fixture": "", "remove_repeated_dir": True},
    build=build,
    conclude=conclude,
    pairs_saves=True,
)
