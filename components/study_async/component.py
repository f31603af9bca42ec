"""Component that compares blocking saves with background saves, by the size of the model."""

from kfp import dsl

from orbax_bench_components.image import IMAGE


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
    """Sets blocking saves beside saves in the background, for each size that a run has saved.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from answering out of its cache.
        output_directory: The run directory; its suite sweeps `async_enabled: [false, true]`.
        study: All that was found, as JSON.
        summary: The tables as Markdown.
        report: The tables with plots, as a page that needs no other file.
        saved: Share of the blocked time that each size saves, from 0 to 1.
        samples: What aggregate wrote; it orders this step after that one.
    """
    from orbax_bench_core.steps.pipeline import ErrorsAsMessages, study_async

    with ErrorsAsMessages():
        study_async(output_directory).into(study=study, summary=summary, report=report, saved=saved)
