"""Paired and unpaired verdicts with advice, and their document."""

from orbax_bench_core.analysis.verdicts.evidence import Evidence
from orbax_bench_core.analysis.verdicts.headlines import headline, nearest_to_trouble
from orbax_bench_core.analysis.verdicts.metrics import MetricsShown
from orbax_bench_core.analysis.verdicts.model import (
    OperationVerdict,
    PointVerdict,
    Unmatched,
    VerdictReport,
    read_verdicts,
    read_verdicts_file,
    what_decided,
    write_verdicts,
)
from orbax_bench_core.analysis.verdicts.paired import (
    evidence_of,
    judge_point,
    judge_run,
    needs_more,
    report,
    version_differences,
)
from orbax_bench_core.analysis.verdicts.plots import ratio_axis, ratio_limits
from orbax_bench_core.analysis.verdicts.unpaired import NO_PAST, compare_stored, compare_unpaired
from orbax_bench_core.analysis.verdicts.view import verdicts_document
from orbax_bench_core.analysis.verdicts.words import attempts, interval, ratio, share

__all__ = [
    "NO_PAST",
    "Evidence",
    "MetricsShown",
    "OperationVerdict",
    "PointVerdict",
    "Unmatched",
    "VerdictReport",
    "attempts",
    "compare_stored",
    "compare_unpaired",
    "evidence_of",
    "headline",
    "interval",
    "judge_point",
    "judge_run",
    "nearest_to_trouble",
    "needs_more",
    "ratio",
    "ratio_axis",
    "ratio_limits",
    "read_verdicts",
    "read_verdicts_file",
    "report",
    "share",
    "verdicts_document",
    "version_differences",
    "what_decided",
    "write_verdicts",
]
