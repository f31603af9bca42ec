"""Component that finds out what a process keeps of every save."""

from kfp import dsl

from orbax_bench_components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def soak(
    pipeline_run: str,
    suite: str,
    output_directory: str,
    answer: dsl.Output[dsl.Dataset],
    summary: dsl.Output[dsl.Markdown],
    report: dsl.Output[dsl.HTML],
    saves: int = 0,
    hours: float = 0.0,
    limit_mib: float = 0.1,
    lock: bool = True,
) -> str:
    """Saves hundreds of times in one process, and judges what it keeps of each save.

    It succeeds whatever the verdict is; hand the word to enforce-verdict, which then fails. A step
    that is started again goes on with what the run directory holds.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from answering out of its cache.
        suite: The suite file, word for word.
        output_directory: The run directory.
        answer: The verdict and what it rests on, as JSON.
        summary: The same as Markdown.
        report: The same with figures, as a page that needs no other file.
        saves: Saves of one process, 200 at least, or 0 where hours count.
        hours: Hours of one process, or 0.
        limit_mib: Memory that a process may keep of each save, in MiB.
        lock: Whether to wait until nothing else of ours measures on the machine.

    Returns:
        LEAK, PASS or INCONCLUSIVE.
    """
    from orbax_bench_core.steps.pipeline import ErrorsAsMessages, soak

    with ErrorsAsMessages():
        return soak(
            suite, output_directory, saves=saves, hours=hours, limit_mib=limit_mib, lock=lock
        ).into(answer=answer, summary=summary, report=report)
