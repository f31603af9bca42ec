"""Component that finds out what a process keeps of each save."""

import os

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


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
    """Save hundreds of times in one process; returns LEAK, PASS or INCONCLUSIVE.

    A restarted step continues the run in its directory.

    The step succeeds whatever it finds, because an engine keeps artifacts only of steps that
    succeed; pass its result to enforce-verdict, which then fails.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        suite: The suite file, word for word.
        output_directory: The run directory.
        answer: All numbers, as JSON.
        summary: What people read, as Markdown.
        report: The same with figures, as a page that needs no other file.
        saves: End after N saves of a process, 200 at least; 0 where hours count.
        hours: End after T hours of a process, instead.
        limit_mib: MiB that may be kept of each save.
        lock: Whether to wait until no other orbax-bench measures on the machine.

    Returns:
        LEAK, PASS or INCONCLUSIVE.
    """
    from orbax_bench_core.engine import as_component

    return as_component("soak", locals())
