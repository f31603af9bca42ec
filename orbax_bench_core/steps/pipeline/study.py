"""Step study-async: blocking saves beside saves in the background."""

from __future__ import annotations

from orbax_bench_core.lineage import bounded_metrics
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps.conclusions import publish_async_study
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.outputs import Output, Outputs
from orbax_bench_core.steps.reporting import publish


@tried_again
def study_async(output_directory: str) -> Outputs[None]:
    """Sets both ways to save side by side, for each size that a run has saved.

    The report of the run links to the study from then on.

    Args:
        output_directory: The run directory; its suite sweeps `async_enabled: [false, true]`.

    Returns:
        `study`, `summary` and `report` are files of the run directory; `saved` has the share of the
        blocked time that each size saves, from 0 to 1.

    Raises:
        UserError: There is no run, or it saved no checkpoint in both ways.
    """
    run = RunDirectory(output_directory)
    found = publish_async_study(run)
    publish(run)  # the report, which aggregate has written before, links to the study
    sizes = [size for series in found.series for size in series.sizes]
    shares = (
        (f"{size.checkpoint} {size.background.point_ids[0]} saved", size.saved.value)
        for size in sizes
    )
    files = (
        ("study", "async_study.json", "study"),
        ("summary", "async_study.md", "study-summary"),
        ("report", "async_study.html", "study-report"),
    )
    named = {output: Output.of_run(run, name, kind) for output, name, kind in files}
    named["saved"] = Output(metadata=bounded_metrics(shares))
    return Outputs(value=None, named=named)
