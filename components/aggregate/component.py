"""Component that puts the records of a sweep together."""

import os
from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def aggregate(
    pipeline_run: str,
    output_directory: str,
    samples: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
    summary: dsl.Output[dsl.Markdown],
    report: dsl.Output[dsl.HTML],
    tensorboard: dsl.Output[dsl.Artifact],
    planned: dsl.Input[dsl.Artifact] = None,
) -> List[str]:  # noqa: UP006
    """Writes samples, summary and reports of a run from the existing records.

    It takes no inputs from the measuring steps, so it works for any number of them. Order it after
    them by `.after(measured)`. It succeeds even if results are missing, because an engine keeps
    artifacts only of steps that succeed; pass its result to enforce-verdict, which then fails. If a
    step was lost it does not run, and finish writes the report.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        output_directory: The run directory.
        planned: What plan-sweep planned; only the lineage of the artifacts needs it.
        samples: Every sample, as Parquet.
        metrics: Median seconds per point and operation, as many as an artifact has room for.
        summary: The report as Markdown.
        report: The report as a self-contained page.
        tensorboard: The folder of TensorBoard's event files in the run directory.

    Returns:
        What is missing, a line each: steps that left nothing, points that are incomplete or have
        failed repeats; at most 20 lines.
    """
    from orbax_bench_core.engine import as_component

    return as_component("aggregate", locals())
