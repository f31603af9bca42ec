"""Content of TensorBoard's Text tab: Markdown about a run, a point and its operations."""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from orbax_bench_core.exports.tensorboard.hparams import series_fields
from orbax_bench_core.exports.tensorboard.metrics import (
    Metrics,
    MetricSeries,
    moved_bytes,
    throughput,
)
from orbax_bench_core.inventory import ROLES, Inventory
from orbax_bench_core.measure import TIME
from orbax_bench_core.pages import num_bytes, seconds, table_cell
from orbax_bench_core.records import Record, Repeat, RunInfo, Series

THROUGHPUT: Final = "4_throughput/operation_gbps"
MISSING = "–"
_HOW_TO_READ = (
    "Scalars of this run end in `_median`, of the slowest host, over the repeats. Times and "
    "headline metrics also have `_mean`, `_min`, `_max`, `_p50` and `_p99`, over all repeats and "
    f"hosts. `{THROUGHPUT}_mean` is all bytes over all seconds. "
    "Only repeats that passed on every host count."
)
_STORE_METRICS: Final = [
    f"6_tensorstore/tensorstore_kvstore_{store}_bytes_{{}}_value_diff"
    for store in ("file", "gcs", "gcs_grpc", "s3")
]
_COSTS: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "written by TensorStore": [metric.format("written") for metric in _STORE_METRICS],
        "read by TensorStore": [metric.format("read") for metric in _STORE_METRICS],
        "written to disk": ["6_io/disk_write_bytes"],
        "read from disk": ["6_io/disk_read_bytes"],
        "sent by network": ["6_io/network_transmit_bytes"],
        "received by network": ["6_io/network_receive_bytes"],
        "CPU time": ["0_basics/cpu_s"],
        "peak memory gained": ["7_memory/host_peak_rss_diff_mb"],
        "peak HBM gained": ["7_memory/device_hbm_peak_diff_gb"],
    }
)
_UNIT_BYTES = {"bytes": 1, "MiB": 2**20, "GiB": 2**30}


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(map(table_cell, line))} |" for line in lines)


def configuration_card(series: Series, info: RunInfo) -> str:
    """Returns the measured thing: benchmark, options, mesh and checkpoint, each in full."""
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
    blocks = [
        f"### {name}\n\n```json\n{json.dumps(value, indent=2)}\n```"
        for name, value in rest.items()
        if value is not None
    ]
    return "\n\n".join(
        [table(("", "value"), facts.items()), table(("option", "value"), options.items()), *blocks]
    )


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
        table(("ran on", ""), _manifest(records[-1]).items()),
        _HOW_TO_READ,
    ]
    return "\n\n".join(parts)


def inventory_card(inventory: Inventory) -> str:
    """Returns the bytes of a checkpoint on storage, by the kind of its files."""
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
        f"{repeat.records[min(repeat.records)].started_at:%Y-%m-%d %H:%M:%S}",
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


def glance_card(operation: str, metrics: Metrics, inventory: Inventory | None) -> str:
    """Returns time, throughput and bytes of an operation, and what it cost, on each host too.

    Time and throughput are those of the slowest host. What was written and what was read stand
    apart, each under its name: a save reads a little, and that is not what it moved.
    """
    time = metrics[operation, TIME]
    times, hosts = time.reduced(max), sorted({host for repeat in time.repeats for host in repeat})
    whole = "" if len(hosts) == 1 else f", slowest of {len(hosts)} hosts"
    rate, moved = throughput(metrics, operation), moved_bytes(metrics, operation)
    rows = {
        "total time": f"{seconds(statistics.median(times))} (median, n = {len(times)}{whole}; "
        f"{seconds(min(times))} – {seconds(max(times))})",
        "throughput": MISSING if rate is None else f"{rate:.4g} GiB/s (all bytes / all seconds)",
        "bytes of the operation": _bytes(statistics.median(moved)) if moved else MISSING,
    }
    costs = {
        title: next(metrics[operation, name] for name in names if (operation, name) in metrics)
        for title, names in _COSTS.items()
        if any((operation, name) in metrics for name in names)
    }
    for title, cost in costs.items():
        # Memory is had by each host for itself; all else adds up.
        value = statistics.median(cost.reduced(max if cost.unit in ("MiB", "GiB") else sum))
        rows[title] = _bytes(value) if cost.unit == "bytes" else _value(value, cost.unit)
    if inventory is not None:
        rows["on storage afterwards"] = (
            f"{_bytes(inventory.total_bytes)} in {inventory.file_count} files; "
            f"data {num_bytes(inventory.data.num_bytes)} in {inventory.data.files}"
        )
    parts = [table((operation, ""), rows.items())]
    if len(hosts) > 1:
        found = {"time": time, **costs}
        lines = [[str(host), *(_of_host(cost, host) for cost in found.values())] for host in hosts]
        parts.append(table(("host", *found), lines))
    parts.append("Medians over the repeats that passed on every host; warm-ups are left out.")
    return "\n\n".join(parts)


def _of_host(cost: MetricSeries, host: int) -> str:
    values = [repeat[host] for repeat in cost.repeats if host in repeat]
    return _value(statistics.median(values), cost.unit) if values else MISSING


def _value(value: float, unit: str) -> str:
    if unit == "s":
        return seconds(value)
    if unit in _UNIT_BYTES:
        return num_bytes(value * _UNIT_BYTES[unit])
    return f"{value:.6g} {unit}".rstrip()


def _bytes(value: float) -> str:
    return f"{num_bytes(value)} ({value:.0f} bytes)"
