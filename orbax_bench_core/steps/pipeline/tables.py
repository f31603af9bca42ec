"""Step aggregate: samples, summary and reports of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orbax_bench_core.analysis.summary import RunSummary
from orbax_bench_core.files import read_json
from orbax_bench_core.lineage import (
    METRICS,
    SAMPLES,
    TENSORBOARD,
    bounded_metrics,
    lost_batches,
    output_metadata,
    point_digests,
)
from orbax_bench_core.records import Run, RunDirectory
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.outputs import Outputs, StepOutput
from orbax_bench_core.steps.reporting import publish
from orbax_bench_core.steps.settling import unfinished
from orbax_bench_core.sweep import Pair

_SHOWN: Final = 20
"""Lines of what is lacking: a later step receives them in one argument, with its other inputs."""


@tried_again
def aggregate(output_directory: str) -> Outputs[list[str]]:
    """Write samples, summary, report and TensorBoard's files; returns what they lack.

    They are written from what is there: a step that was lost loses no more than its own points.

    Args:
        output_directory: The run directory.

    Returns:
        The value names what is lacking, a line each and 20 of them at most: steps that left
        nothing, points that are not complete or have failed repeats, and files that had to be left
        out. `samples`, `summary`, `report` and `metrics`, the median seconds by point and
        operation, are files of the run directory, `tensorboard` is a folder there.

    Raises:
        UserError: There is no run here.
    """
    run = RunDirectory(output_directory)
    found = publish(run)
    files = {"samples": SAMPLES, "summary": "report.md", "report": "report.html"}
    named = {kind: StepOutput.of_run(run, name, kind) for kind, name in files.items()}
    medians = read_json(run.root / METRICS)
    named["metrics"] = StepOutput(
        metadata=bounded_metrics(medians.items()), place=str(run.root / METRICS), copied=True
    )
    of_events = output_metadata(run, TENSORBOARD, "tensorboard")
    named["tensorboard"] = StepOutput(metadata=of_events, place=str(run.root / TENSORBOARD))
    return Outputs(value=lacking_of(Run(run), found), named=named)


def lacking_of(run: Run, summary: RunSummary) -> list[str]:
    """Returns what a report lacks, a line each and 20 of them at most.

    It is steps that were lost, incomplete points, failed repeats and files that were left out;
    failures of a comparison are part of its verdict.
    """
    lacking = list(_lacking(run, summary))
    more = [f"and {len(lacking) - _SHOWN} more"] if len(lacking) > _SHOWN else []
    return [*lacking[:_SHOWN], *more]


def _lacking(run: Run, summary: RunSummary) -> Iterator[str]:
    entries = run.info.expansion.points
    points = point_digests(run.directory.root, [entry.id for entry in entries])
    for name, ids in lost_batches(run.directory, points).items():
        yield f"the step of {name} left nothing, and {len(ids)} of its points have no record"
    for entry in unfinished(run):
        yield f"{entry.name} {entry.id}: incomplete"
    if not any(isinstance(entry, Pair) for entry in entries):
        for point in summary.points:
            if point.failed:
                yield f"{point.point} {point.point_id}: {point.failed} of its repeats failed"
    yield from summary.left_out
