"""Step best: the options that a sweep recommends."""

from __future__ import annotations

from orbax_bench_core.analysis.best import best as choose
from orbax_bench_core.analysis.best import best_document
from orbax_bench_core.errors import check_amounts
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.outputs import Files, Outputs


@tried_again
def best(
    output_directory: str,
    *,
    goal: str = "",
    peak_memory_bytes: int = 0,
    files: Files | None = None,
) -> Outputs[list[str]]:
    """Ranks the points of a sweep by a goal, and recommends one of each case.

    Args:
        output_directory: The run directory, which aggregate has been through.
        goal: What to make small, as `orbax-bench best --goal` takes it; empty for `save`, or the
            first that was measured.
        peak_memory_bytes: Most host memory that a point may take; 0 for any.
        files: Where the answer is written.

    Returns:
        The value is the id of the recommended point of each case, empty for a case that has none.

    Raises:
        UserError: There is no sweep here, the goal was not measured, or a file cannot be written.
    """
    check_amounts(peak_memory_bytes=peak_memory_bytes)
    found = choose(output_directory, goal=goal or None, peak_memory=peak_memory_bytes or None)
    named = (files or Files()).write(
        "best", best_document(found), found, run=RunDirectory(output_directory)
    )
    ids = [case.recommendation.point_id if case.recommendation else "" for case in found.cases]
    return Outputs(value=ids, named=named)
