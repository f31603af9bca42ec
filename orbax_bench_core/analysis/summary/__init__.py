"""Summary of a run: median, spread, throughput and straggler per point and operation."""

from orbax_bench_core.analysis.summary.aggregate import (
    MetricSummary,
    PointStatus,
    RunSummary,
    SummaryTable,
    summarize,
)
from orbax_bench_core.analysis.summary.view import (
    ExtraColumns,
    html_page,
    markdown_page,
    print_notes,
    print_summary,
)

__all__ = [
    "ExtraColumns",
    "MetricSummary",
    "PointStatus",
    "RunSummary",
    "SummaryTable",
    "html_page",
    "markdown_page",
    "print_notes",
    "print_summary",
    "summarize",
]
