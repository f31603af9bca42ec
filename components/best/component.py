"""Component that recommends the options of a sweep."""

from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

from orbax_bench_components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def best(
    pipeline_run: str,
    output_directory: str,
    answer: dsl.Output[dsl.Dataset],
    summary: dsl.Output[dsl.Markdown],
    report: dsl.Output[dsl.HTML],
    goal: str = "",
    peak_memory_bytes: int = 0,
    samples: dsl.Input[dsl.Dataset] = None,
) -> List[str]:  # noqa: UP006
    """Ranks the points of a sweep by a goal, and recommends one of each case.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from answering out of its cache.
        output_directory: The run directory of the sweep.
        answer: Ranking, effects, Pareto front and recommendation, as JSON.
        summary: The same as Markdown, with the recommendation as code of Orbax.
        report: The same with figures, as a page that needs no other file.
        goal: What to make small: blocking, save, load, bytes, memory, an operation, or several with
            weights, such as blocking=3,load=1; empty for save, or the first that was measured.
        peak_memory_bytes: Most host memory that a point may take; 0 for any.
        samples: What aggregate wrote; it orders this step after that one.

    Returns:
        The id of the recommended point of each case, empty for a case that has none.
    """
    from orbax_bench_core.steps.pipeline import ErrorsAsMessages, best

    with ErrorsAsMessages():
        return best(
            output_directory,
            goal=goal,
            peak_memory_bytes=peak_memory_bytes,
            answer=answer.path,
            summary=summary.path,
            report=report.path,
        ).into(answer=answer, summary=summary, report=report)
