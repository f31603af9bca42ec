"""Component that compares blocking saves with saves in the background."""

import os

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def study_async(
    pipeline_run: str,
    output_directory: str,
    study: dsl.Output[dsl.Dataset],
    summary: dsl.Output[dsl.Markdown],
    report: dsl.Output[dsl.HTML],
    saved: dsl.Output[dsl.Metrics],
    samples: dsl.Input[dsl.Dataset] = None,
) -> None:
    """Compare blocking saves with saves in the background, for each size in a run.

    The report of the run links to the study from then on.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        output_directory: The run directory; its suite sweeps `async_enabled: [false, true]`.
        study: All results, as JSON.
        summary: What people read, as Markdown.
        report: The same with figures, as a page that needs no other file.
        saved: Share of the blocked time that each size saves, from 0 to 1.
        samples: What aggregate wrote; it orders this step after that one.
    """
    from orbax_bench_core.engine import as_component

    return as_component("study_async", locals())
