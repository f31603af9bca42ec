"""Summary of a run: median, spread, throughput and straggler per point and operation."""

from orbax_bench_core.analysis.summary.aggregate import SummaryTable, cut, summarize
from orbax_bench_core.analysis.summary.model import MetricSummary, PointStatus, RunSummary
from orbax_bench_core.analysis.summary.series_names import short_names, shortened
from orbax_bench_core.analysis.summary.tables import ExtraColumns
from orbax_bench_core.analysis.summary.terminal import (
    metrics_document,
    notes_document,
    terminal_document,
)
from orbax_bench_core.analysis.summary.view import summary_document

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
