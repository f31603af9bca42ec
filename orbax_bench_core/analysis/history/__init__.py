"""Past runs in the order of time, and when what they measure has changed."""

from orbax_bench_core.analysis.history.build import history
from orbax_bench_core.analysis.history.changes import LEAST, MOST
from orbax_bench_core.analysis.history.view import history_html, print_history

__all__ = [
    "LEAST",
    "MOST",
    "history",
    "history_html",
    "print_history",
]
