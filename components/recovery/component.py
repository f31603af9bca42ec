"""Component that kills a training job and measures how fast it is back."""

from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

from orbax_bench_components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def recovery(
    pipeline_run: str,
    suite: str,
    output_directory: str,
    answer: dsl.Output[dsl.Dataset],
    summary: dsl.Output[dsl.Markdown],
    report: dsl.Output[dsl.HTML],
    add_notice: float = 0.0,
    add_start: float = 0.0,
    lock: bool = True,
) -> List[str]:  # noqa: UP006
    """Kills a training job again and again, and measures how fast it is back.

    It succeeds whatever did not come back; hand what it returns to enforce-verdict, which then
    fails. Of a suite with arms compare-baseline returns the verdict.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from answering out of its cache.
        suite: The suite file, word for word, with the benchmark training_job.
        output_directory: The run directory.
        answer: Every phase with its interval, steps lost and reasons, as JSON.
        summary: The same as Markdown.
        report: The same with figures, as a page that needs no other file.
        add_notice: Seconds until the platform notices a failure, beyond what is measured.
        add_start: Seconds to replace a node, to wait for a scheduler and to start accelerators.
        lock: Whether to wait until nothing else of ours measures on the machine.

    Returns:
        The points of which drills did not come back, a line each.
    """
    from orbax_bench_core.steps.pipeline import ErrorsAsMessages, recovery

    with ErrorsAsMessages():
        return recovery(
            suite, output_directory, add_notice=add_notice, add_start=add_start, lock=lock
        ).into(answer=answer, summary=summary, report=report)
