"""Search over releases, as it is kept and read: its steps, its answer, and the ratio by release."""

from orbax_bench_core.analysis.releases.model import (
    Conclusion,
    OperationRatio,
    Purpose,
    ReleaseSearch,
    ReleaseWord,
    SearchStep,
)
from orbax_bench_core.analysis.releases.view import answer, search_document

__all__ = [
    "Conclusion",
    "OperationRatio",
    "Purpose",
    "ReleaseSearch",
    "ReleaseWord",
    "SearchStep",
    "answer",
    "search_document",
]
