"""Component that ends a pipeline: report and state, whatever became of its other steps."""

import os
from typing import List, Optional  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def finish(
    pipeline_run: str,
    output_directory: str,
    status: dsl.PipelineTaskFinalStatus,
    ending: dsl.Output[dsl.Markdown],
    report: dsl.Output[dsl.HTML],
    metrics: dsl.Output[dsl.Metrics],
    verdicts: dsl.Output[dsl.Dataset],
    verdicts_report: dsl.Output[dsl.HTML],
    suite: str = "",
    folder_per_run: bool = False,
    slices: Optional[List[str]] = None,  # noqa: UP006, UP045
    go_on: bool = False,
) -> str:
    """Writes the missing report and verdicts of a run, and announces its state; the exit task.

    Make it the `exit_task` of a `dsl.ExitHandler` around all other steps: then it runs when they
    have succeeded, when one failed or was lost, and when none of them ran. It does not rewrite what
    they have written.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        output_directory: The run directory; a parameter of the pipeline, because an exit task takes
            no outputs of other steps.
        status: How the other steps ended, which the service fills in.
        ending: The state of the run and the reasons, as Markdown.
        report: The page of the run; for several slices, or if nothing was measured, the ending.
        metrics: The state, the medians and the ratios, also of a run that failed.
        verdicts: verdicts.json; empty if nothing was compared, or there are several slices.
        verdicts_report: The page of the verdicts, with the same exception.
        suite: The suite file, word for word, to report its mistakes if nothing was planned.
        folder_per_run: Whether each run has its own folder below the output directory.
        slices: Names of the slices, if each has its own folder.
        go_on: As for plan-sweep: otherwise a run that another run of the pipeline began in the
            directory stays unchanged.

    Returns:
        REGRESSION, FAILED, INCONCLUSIVE, ACCEPTED or PASS.
    """
    from orbax_bench_core.engine import as_component

    return as_component(
        "finish",
        locals(),
        pipeline_run=pipeline_run if folder_per_run else "",
        engine_run="" if go_on else pipeline_run,
        slice_names=slices or (),
        status=status.state,
    )
