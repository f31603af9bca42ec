"""Step aggregate: samples, summary and reports of a run."""

from __future__ import annotations

from collections.abc import Iterable

from orbax_bench_core.lineage import artifact_metadata, bounded_metrics, input_digests
from orbax_bench_core.records import RunDirectory, checked_record_files
from orbax_bench_core.steps.pipeline.outputs import Output, Outputs
from orbax_bench_core.steps.planning import collect_records
from orbax_bench_core.steps.reporting import publish


def aggregate(output_directory: str, *, records: Iterable[str] = ()) -> Outputs[None]:
    """Writes the tables and pages of a run from the records of its points.

    Args:
        output_directory: The run directory.
        records: Files of records as JSON lines, as run-sweep-point wrote them; what the run
            directory has already is left as it is.

    Returns:
        `samples`, `summary` and `report` are files of the run directory, `tensorboard` is a folder
        there, and `metrics` has median seconds per point and operation.

    Raises:
        UserError: There is no run here.
    """
    run = RunDirectory(output_directory)
    collect_records(run, checked_record_files(records))
    found = publish(run)
    ids = [point.point_id for point in found.points]
    times = (operation.time for operation in found.operations)
    medians = ((f"{time.point} {time.point_id} {time.operation} s", time.median) for time in times)
    inputs = input_digests(run, "records")
    of_metrics, of_events = (
        artifact_metadata(kind, run, point_ids=ids, inputs=inputs)
        for kind in ("metrics", "tensorboard")
    )
    files = {"samples": "samples.parquet", "summary": "report.md", "report": "report.html"}
    named = {kind: Output.of_run(run, name, kind, point_ids=ids) for kind, name in files.items()}
    named["metrics"] = Output(metadata={**bounded_metrics(medians), **of_metrics})
    named["tensorboard"] = Output(metadata=of_events, place=str(run.root / "tensorboard"))
    return Outputs(value=None, named=named)
