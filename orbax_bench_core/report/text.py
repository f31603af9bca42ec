"""Numbers as people read them, the same in every report."""

from __future__ import annotations

from orbax_bench_core.results.summary import OperationSummary

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
        "–" if operation.throughput is None else f"{operation.throughput:.3g}",
    )


def seconds(value: float) -> str:
    """Returns a duration with a unit that suits its size, to three digits."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (600.0, 1.0, "s")):
        if abs(value) < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value / 60:.3g} min"


def percent(ratio: float | None) -> str:
    """Returns a ratio in percent; a dash when there is none."""
    return "–" if ratio is None else f"{ratio * 100:.0f} %"


def num_bytes(value: float) -> str:
    """Returns a size in binary units, to three digits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} TiB"
