"""Everything that is derived from the records of a run, written into its directory."""

from __future__ import annotations

from orbax_bench_core.report.limits import operation_limits
from orbax_bench_core.report.operations_table import NO_LIMITS, RunLimits
from orbax_bench_core.report.page import html_page, markdown_page
from orbax_bench_core.report.tensorboard.write import write_tensorboard
from orbax_bench_core.results.files import write_atomically
from orbax_bench_core.results.run_directory import RunDirectory, RunInfo
from orbax_bench_core.results.samples import to_parquet
from orbax_bench_core.results.summary import RunSummary, summarize, to_csv


def limits_of(run: RunDirectory, info: RunInfo, summary: RunSummary) -> RunLimits:
    """Returns how near the operations of a run come to the limits that were measured with it.

    Args:
        run: The run directory; without `limits.json` there is nothing to compare with.
        info: What its `run.json` says.
        summary: What it found.
    """
    limits = run.read_limits()
    if limits is None:
        return NO_LIMITS
    points = [point for point in info.expansion.points if point.processes == 1]
    return operation_limits(summary, points, limits)


def publish(run: RunDirectory) -> RunSummary:
    """Writes tables, pages and TensorBoard's files from the records, and sets the status.

    The tables are `samples.parquet` and `summary.csv`, the pages `report.md` and `report.html`.

    Args:
        run: A run directory; only its records are read, so this can be repeated at any time.

    Returns:
        What the run found.
    """
    info = run.read_info()
    summary = summarize(run.records())
    finished = {point.point_id: point.passed + point.skipped for point in summary.points}
    complete = all(finished.get(point.id, 0) >= info.num_repeats for point in info.expansion.points)
    info = info.model_copy(update={"status": "complete" if complete else "incomplete"})
    write_atomically(run.root / "samples.parquet", to_parquet(run.records()))
    write_atomically(run.root / "summary.csv", to_csv(summary))
    first, limits = next(run.records(), None), limits_of(run, info, summary)
    write_atomically(run.root / "report.md", markdown_page(info, summary, first, limits).encode())
    write_atomically(run.root / "report.html", html_page(info, summary, first, limits).encode())
    write_tensorboard(run, info)
    run.write_info(info)
    return summary
