"""Everything that is derived from the records of a run, written into its directory."""

from __future__ import annotations

from orbax_bench_core.report.page import html_page, markdown_page
from orbax_bench_core.results.files import write_atomically
from orbax_bench_core.results.run_directory import RunDirectory
from orbax_bench_core.results.samples import to_parquet
from orbax_bench_core.results.summary import RunSummary, summarize, to_csv


def publish(run: RunDirectory) -> RunSummary:
    """Writes `samples.parquet`, `summary.csv`, `report.md` and `report.html`, and sets the status.

    Args:
        run: A run directory; only its records are read, so this can be repeated at any time.

    Returns:
        What the run found.
    """
    info = run.read_info()
    summary = summarize(run.records())
    repeats = sum(point.passed + point.skipped for point in summary.points)
    complete = repeats >= len(info.expansion.points) * info.num_repeats
    info = info.model_copy(update={"status": "complete" if complete else "incomplete"})
    write_atomically(run.root / "samples.parquet", to_parquet(run.records()))
    write_atomically(run.root / "summary.csv", to_csv(summary))
    first = next(run.records(), None)
    write_atomically(run.root / "report.md", markdown_page(info, summary, first).encode())
    write_atomically(run.root / "report.html", html_page(info, summary, first).encode())
    run.write_info(info)
    return summary
