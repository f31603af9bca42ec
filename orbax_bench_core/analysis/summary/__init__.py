"""Summary of a run: median, spread, throughput and straggler per point and operation."""

from orbax_bench_core.analysis.summary.aggregate import SummaryTable as SummaryTable
from orbax_bench_core.analysis.summary.aggregate import summarize as summarize
from orbax_bench_core.analysis.summary.model import MetricSummary as MetricSummary
from orbax_bench_core.analysis.summary.model import PointStatus as PointStatus
from orbax_bench_core.analysis.summary.model import RunSummary as RunSummary
from orbax_bench_core.analysis.summary.names import short_names as short_names
from orbax_bench_core.analysis.summary.tables import ExtraColumns as ExtraColumns
from orbax_bench_core.analysis.summary.view import notes_lines as notes_lines
from orbax_bench_core.analysis.summary.view import summary_document as summary_document
