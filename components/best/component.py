"""Component that chooses the options of a sweep."""

import os
from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


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
    """Choose the options of a sweep; returns the id of the best point of each case.

    If no point can be recommended for a case, its id is empty.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        output_directory: The run directory of the sweep, which aggregate has been through.
        answer: All numbers, as JSON.
        summary: What people read, as Markdown.
        report: The same with figures, as a page that needs no other file.
        goal: What to make small: blocking, save, load, bytes, memory, an operation, or several with
            weights, such as blocking=3,load=1; empty for save, or the first that was measured.
        peak_memory_bytes: Most host memory that a point may take; 0 for any.
        samples: What aggregate wrote; it orders this step after that one.

    Returns:
        The id of the recommended point of each case, empty for a case that has none.
    """
    from orbax_bench_core.engine import as_component

    return as_component("best", locals())
