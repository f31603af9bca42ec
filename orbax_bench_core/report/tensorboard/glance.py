"""The card that shows one operation at a glance."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from orbax_bench_core.inventory.inventory import Inventory
from orbax_bench_core.report.cards import MISSING, table
from orbax_bench_core.report.tensorboard.operations import Operation
from orbax_bench_core.report.tensorboard.series import Series
from orbax_bench_core.report.text import num_bytes, seconds

_UNIT_BYTES = {"bytes": 1, "MiB": 2**20, "GiB": 2**30}


def glance_card(operation: Operation, inventory: Inventory | None) -> str:
    """Returns time, throughput and bytes of an operation, and what it cost, on each host too.

    Time and throughput are those of the slowest host. What was written and what was read stand
    apart, each under its name: a save reads a little, and that is not what it moved.

    Args:
        operation: The operation.
        inventory: What the last repeat left on storage; None when that is not known.
    """
    times = operation.seconds
    hosts = sorted({host for repeat in operation.time.repeats for host in repeat})
    whole = "" if len(hosts) == 1 else f", slowest of {len(hosts)} hosts"
    rows = {
        "total time": f"{seconds(statistics.median(times))} "
        f"(median, n = {len(times)}{whole}; "
        f"{seconds(min(times))} – {seconds(max(times))})",
        "throughput": MISSING
        if operation.throughput is None
        else f"{operation.throughput:.4g} GiB/s (all bytes / all seconds)",
        "bytes of the operation": _bytes(statistics.median(operation.num_bytes))
        if operation.num_bytes
        else MISSING,
    }
    for title, cost in operation.costs.items():
        # Memory is had by each host for itself; all else adds up.
        add_up = max if cost.unit in ("MiB", "GiB") else sum
        rows[title] = _over_repeats(cost, add_up)
    if inventory is not None:
        rows["on storage afterwards"] = (
            f"{_bytes(inventory.total_bytes)} in {inventory.file_count} files; "
            f"data {num_bytes(inventory.data.num_bytes)} in {inventory.data.files}"
        )
    parts = [table((operation.name, ""), rows.items())]
    if len(hosts) > 1:
        columns = {"time": operation.time, **operation.costs}
        lines = [[str(host), *(_of_host(one, host) for one in columns.values())] for host in hosts]
        parts.append(table(("host", *columns), lines))
    parts.append("Medians over the repeats that passed on every host; warm-ups are left out.")
    return "\n\n".join(parts)


def _over_repeats(cost: Series, add_up: Callable[[Sequence[float]], float]) -> str:
    value = statistics.median(add_up(list(repeat.values())) for repeat in cost.repeats)
    return _bytes(value) if cost.unit == "bytes" else _value(value, cost.unit)


def _of_host(cost: Series, host: int) -> str:
    values = cost.of_host(host)
    return _value(statistics.median(values), cost.unit) if values else MISSING


def _value(value: float, unit: str) -> str:
    if unit == "s":
        return seconds(value)
    if unit in _UNIT_BYTES:
        return num_bytes(value * _UNIT_BYTES[unit])
    return f"{value:.6g} {unit}".rstrip()


def _bytes(value: float) -> str:
    return f"{num_bytes(value)} ({value:.0f} bytes)"
