"""Component that kills a training job and finds out how fast it is back."""

import os
from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


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
    """Kill a training job again and again; returns what did not come back, as a list.

    With arms, compare-baseline returns the verdict. A restarted step continues the run in its
    directory.

    The step succeeds whatever it finds, because an engine keeps artifacts only of steps that
    succeed; pass its result to enforce-verdict, which then fails.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        suite: The suite file, word for word, with the benchmark training_job.
        output_directory: The run directory.
        answer: All numbers, as JSON.
        summary: What people read, as Markdown.
        report: The same with figures, as a page that needs no other file.
        add_notice: Seconds until the platform notices a failure, beyond what is measured.
        add_start: Seconds to replace a node, to wait for a scheduler and to start accelerators.
        lock: Whether to wait until no other orbax-bench measures on the machine.

    Returns:
        The points with drills that did not come back, a line each.
    """
    from orbax_bench_core.engine import as_component

    return as_component("recovery", locals())
