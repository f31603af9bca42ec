"""The async study: save several sizes blocking and in the background, and set them side by side."""

from typing import TYPE_CHECKING

from orbax_bench_pipelines.definitions.pipeline import KEEP_DATA, Finished, Pipeline
from orbax_bench_pipelines.definitions.steps import Steps

if TYPE_CHECKING:
    from rich.console import Console


def add(steps: Steps) -> None:
    """Adds the study."""
    from orbax_bench_components.study_async import study_async

    steps.add(study_async, output_directory=steps.directory, samples=steps.samples)
    steps.enforce()


def conclude(finished: Finished, console: "Console") -> int:
    """Shows what each size saves; repeats that failed, or no study at all, are a failure."""
    import pydantic

    from orbax_bench_core.analysis.async_study import AsyncStudy, study_document
    from orbax_bench_core.document import print_document
    from orbax_bench_core.exit_codes import Exit, exit_code
    from orbax_bench_core.files import read_at_most
    from orbax_bench_core.records import RunDirectory, RunFile

    try:
        text = read_at_most(RunDirectory(finished.directory).root / RunFile.STUDY)
        study = AsyncStudy.model_validate_json(text)
    except (OSError, pydantic.ValidationError):
        return Exit.FAILED
    print_document(study_document(study), console)
    return exit_code(study.outcome)


ASYNC_STUDY = Pipeline(
    name="async-study",
    summary="Shows which share of the blocked time async saves avoid, by size of the model.",
    suite="The suite file, word for word; it sweeps `async_enabled: [false, true]` over "
    "checkpoints of several sizes.",
    own=(KEEP_DATA,),
    add=add,
    conclude=conclude,
    measuring={"measure_limits": False},
    pairs_saves=True,
)
