"""Numbers as people read them, the same in every report."""

from __future__ import annotations

from orbax_bench_core.analysis.summary.aggregate import OperationSummary
from orbax_bench_core.analysis.summary.straggler import Straggler

OPERATION_HEADINGS = ("operation", "n", "median", "spread", "min", "max", "GiB/s")


def operation_cells(operation: OperationSummary) -> tuple[str, ...]:
    """Returns one table row, with the columns of `OPERATION_HEADINGS`."""
    time = operation.time
    return (
        time.operation,
        str(time.n),
        seconds(time.median),
        percent(time.spread),
        seconds(time.minimum),
        seconds(time.maximum),
        "–" if operation.throughput is None else _digits(operation.throughput),
    )


def straggler_sentence(operation: str, straggler: Straggler) -> str:
    """Returns which host the others waited for in an operation, and in which stage."""
    said = (
        f"{operation}: host {straggler.host} was slowest in {straggler.slowest} of "
        f"{straggler.repeats} repeats; the slowest host took {seconds(straggler.excess_s)} more "
        "than the median host"
    )
    if straggler.stage is None:
        return said
    return f"{said}, most of it in {straggler.stage} (+{seconds(straggler.stage_excess_s)})"


def seconds(value: float) -> str:
    """Returns a duration with a unit that suits its size, to three digits."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (600.0, 1.0, "s")):
        if abs(value) < limit:
            return f"{_digits(value * factor)} {unit}"
    return f"{_digits(value / 60)} min"


def percent(ratio: float | None) -> str:
    """Returns a ratio in percent; a dash when there is none."""
    return "–" if ratio is None else f"{ratio * 100:.0f} %"


def num_bytes(value: float) -> str:
    """Returns a size in binary units, to three digits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{_digits(value)} {unit}"
        value /= 1024
    return f"{_digits(value)} TiB"


def table_cell(text: str) -> str:
    """Returns text as the cell of a Markdown table, which a bar or a new line would end."""
    return " ".join(text.replace("|", "\\|").split())


def _digits(value: float) -> str:
    # From 999.5 on, `.3g` would write an exponent.
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"
