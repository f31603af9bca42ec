"""Documents that people read: numbers as text and the look of figures."""

from orbax_bench_core.document.figures import shorten
from orbax_bench_core.document.numbers import digits, num_bytes, percent, seconds, table_cell

__all__ = [
    "digits",
    "num_bytes",
    "percent",
    "seconds",
    "shorten",
    "table_cell",
]
