"""Past runs in the order of time, and flags where what they measure has changed."""

from orbax_bench_core.analysis.history.build import history, measured_in
from orbax_bench_core.analysis.history.changes import LEAST, MOST
from orbax_bench_core.analysis.history.model import History, PastOperation
from orbax_bench_core.analysis.history.trend import trends_table, what_ran_in
from orbax_bench_core.analysis.history.view import history_document

__all__ = [
    "LEAST",
    "MOST",
    "History",
    "PastOperation",
    "history",
    "history_document",
    "measured_in",
    "trends_table",
    "what_ran_in",
]
