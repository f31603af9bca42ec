"""Step run-sweep-point: every repeat of one sweep point."""

from __future__ import annotations

from orbax_bench_core.execute import RunSettings
from orbax_bench_core.lineage import records_metadata
from orbax_bench_core.steps.pipeline.outputs import Output, Outputs
from orbax_bench_core.steps.planning import write_records
from orbax_bench_core.steps.point import run_point


def run_sweep_point(
    point: str,
    output_directory: str,
    *,
    records: str,
    settings: RunSettings | None = None,
    limits: bool = True,
    strict: bool = False,
    lock: bool = True,
) -> Outputs[str]:
    """Measures a point, or blocks of both arms of a pair until it has its verdict.

    Args:
        point: The point, as plan-sweep returned it.
        output_directory: The run directory that plan-sweep began.
        records: Where the point's records are written as JSON lines.
        settings: How to measure.
        limits: Whether to measure what the machine and the storage can do, once per run.
        strict: Whether a failed repeat fails the step.
        lock: Whether to wait until nothing else of ours measures on this machine.

    Returns:
        The value is `passed` or `failed`; `records` are those of measured repeats and warm-ups.

    Raises:
        UserError: The directory holds no run.
        PointFailed: A repeat failed and `strict` is set.
    """
    _, found = run_point(
        point,
        output_directory,
        settings=settings or RunSettings(),
        limits=limits,
        strict=strict,
        lock=lock,
    )
    write_records(found, records)
    status = "failed" if any(record.status == "failed" for record in found) else "passed"
    metadata = records_metadata(output_directory, point, records) | {"status": status}
    written = Output(metadata=metadata, place=records, copied=True)
    return Outputs(value=status, named={"records": written})
