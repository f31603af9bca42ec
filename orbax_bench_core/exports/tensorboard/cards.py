"""Cards: short Markdown texts about one sweep point, made from its records alone."""

from __future__ import annotations

import functools
import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from orbax_bench_core.document import num_bytes, seconds, table_cell
from orbax_bench_core.exports.tensorboard.hparams import series_fields
from orbax_bench_core.exports.tensorboard.operations import MetricSeries, Operation
from orbax_bench_core.inventory import ROLES, Inventory
from orbax_bench_core.records import Record, Repeat, RunInfo, Series

MISSING = "–"
_UNIT_BYTES = {"bytes": 1, "MiB": 2**20, "GiB": 2**30}


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(map(table_cell, line))} |" for line in lines)


def configuration_card(series: Series, info: RunInfo) -> str:
    """Returns what was measured: benchmark, options, mesh and checkpoint, each in full."""
    point = series.point
    facts = {
        "point": series.name,
        "id": series.id,
        "suite": info.suite_name,
        "benchmark": point.benchmark,
        "checkpoint": point.checkpoint.label,
        "mesh": "none" if point.mesh is None else point.mesh.label,
        "devices": "any" if point.num_devices is None else str(point.num_devices),
        "processes": str(point.processes),
    }
    rest = series_fields(series, exclude={"benchmark", "options", "given", "processes", "label"})
    options = {name: json.dumps(value) for name, value in sorted(point.options.items())}
    blocks = [_block(name, json.dumps(value)) for name, value in rest.items() if value is not None]
    return "\n\n".join(
        [table(("", "value"), facts.items()), table(("option", "value"), options.items()), *blocks]
    )


@functools.lru_cache(maxsize=256)  # points share all but their options
def _block(name: str, text: str) -> str:
    return f"### {name}\n\n```json\n{json.dumps(json.loads(text), indent=2)}\n```"


def run_summary_card(series: Series, info: RunInfo, repeats: Sequence[Repeat]) -> str:
    """Returns how each repeat ended, in order, and what ran on what."""
    records = [record for repeat in repeats for record in repeat.records.values()]
    passed = sum(repeat.counts for repeat in repeats)
    # How many operations an arm is to make, its verdict decides.
    wanted = info.num_repeats if series.arm is None else len(repeats)
    parts = [
        f"**{series.name}** ({series.id}): {passed} of {wanted} repeats passed.",
        table(
            ("repeat", "status", "hosts", "began (UTC)", "took", "why"),
            [_repeat_row(repeat) for repeat in repeats],
        ),
    ]
    if records:
        parts.append(table(("ran on", ""), _manifest(records[-1]).items()))
    return "\n\n".join(parts)


def inventory_card(inventory: Inventory) -> str:
    """Returns what a checkpoint occupies on storage, by the kind of its files."""
    rows = [
        (kind, ROLES[kind], str(count.files), num_bytes(count.num_bytes), str(count.num_bytes))
        for kind, count in inventory.kinds.items()
    ]
    total = ("all", "", str(inventory.file_count), num_bytes(inventory.total_bytes))
    parts = [
        table(("kind", "", "files", "size", "bytes"), [*rows, (*total, str(inventory.total_bytes))])
    ]
    if inventory.data.files:
        parts.append(
            f"Smallest data file: {num_bytes(inventory.smallest_data_bytes)}; "
            f"largest: {num_bytes(inventory.largest_data_bytes)}; "
            f"smaller than 1 MiB: {inventory.small_data_files} of {inventory.data.files}."
        )
    if inventory.warning is not None:
        parts.append(f"**Warning:** {inventory.warning}.")
    return "\n\n".join(parts)


def _repeat_row(repeat: Repeat) -> tuple[str, ...]:
    records = repeat.records.values()
    missing = repeat.missing
    reasons = [repeat.error.said] if repeat.error else []
    if missing:
        reasons.append(f"no record from host {', '.join(map(str, missing))}")
    return (
        str(repeat.index),
        repeat.status,
        f"{len(records)} of {repeat.num_hosts}",
        # To the second; `strftime` takes three times as long.
        str(repeat.records[min(repeat.records)].started_at)[:19],
        seconds(max(record.duration_s for record in records)),
        "; ".join(reasons) or MISSING,
    )


def _manifest(record: Record) -> dict[str, str]:
    facts: dict[str, str] = {}
    for name, value in record.provenance.items():
        if isinstance(value, Mapping):
            given = (f"{key} {inner}" for key, inner in value.items() if inner not in ("", None))
            facts[name] = ", ".join(given) or MISSING
        else:
            facts[name] = str(value)
    return facts


def glance_card(operation: Operation, inventory: Inventory | None) -> str:
    """Returns time, throughput and bytes of an operation, and what it cost, on each host too.

    Time and throughput are those of the slowest host. What was written and what was read stand
    apart, each under its name: a save reads a little, and that is not what it moved.

    Args:
        operation: The operation.
        inventory: What the last repeat left on storage; None when that is not known.
    """
    times = operation.seconds
    hosts = operation.time.hosts
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
        lines = [
            [str(host), *(_of_host(cost, host) for cost in columns.values())] for host in hosts
        ]
        parts.append(table(("host", *columns), lines))
    parts.append("Medians over the repeats that passed on every host; warm-ups are left out.")
    return "\n\n".join(parts)


def _over_repeats(cost: MetricSeries, add_up: Callable[[Iterable[float]], float]) -> str:
    value = statistics.median(cost.reduced(add_up))
    return _bytes(value) if cost.unit == "bytes" else _value(value, cost.unit)


def _of_host(cost: MetricSeries, host: int) -> str:
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
