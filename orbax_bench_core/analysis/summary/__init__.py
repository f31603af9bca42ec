"""Summary of a run: median, spread, throughput and straggler per point and operation."""

from orbax_bench_core.analysis.summary.aggregate import SummaryTable, cut, summarize
from orbax_bench_core.analysis.summary.charts import short_names, shortened
from orbax_bench_core.analysis.summary.model import MetricSummary, PointStatus, RunSummary
from orbax_bench_core.analysis.summary.tables import ExtraColumns
from orbax_bench_core.analysis.summary.view import (
    metrics_document,
    notes_document,
    summary_document,
    terminal_document,
)

__all__ = [
    "ExtraColumns",
    "MetricSummary",
    "PointStatus",
    "RunSummary",
    "SummaryTable",
    "cut",
    "metrics_document",
    "notes_document",
    "short_names",
    "shortened",
    "summarize",
    "summary_document",
    "terminal_document",
]
