"""Past runs in the order of time, and change points of what they measure."""

from orbax_bench_core.analysis.history.build import history
from orbax_bench_core.analysis.history.changes import LEAST, MOST
from orbax_bench_core.analysis.history.view import history_document

__all__ = [
    "LEAST",
    "MOST",
    "history",
    "history_document",
]
