"""Content of TensorBoard's Text and HParams tabs: cards, series, columns and metrics."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams.plugin_data_pb2 import SessionStartInfo

from orbax_bench_core.errors import without_credentials
from orbax_bench_core.gate import cut
from orbax_bench_core.inventory import ROLES, Inventory
from orbax_bench_core.measure import BYTES, TIME, block_name, lookup
from orbax_bench_core.pages import num_bytes, seconds, table_cell
from orbax_bench_core.records import Record, Repeat, RunInfo, Series
from orbax_bench_core.sweep import Pair

Value = bool | float | str
_NOT_SWEPT = {"benchmark", "options", "given", "checkpoint", "mesh", "label"}


def columns(every: Iterable[Series]) -> dict[str, dict[str, Value]]:
    """Returns the hyperparameters of each series, by its id.

    A column holds one type, so that it can be sorted: numbers, true or false, or text. Where points
    differ in type, all of them become text. A value of none stays out, and its cell empty.
    """
    rows = {series.id: _parameters(series) for series in every}
    kinds: dict[str, set[type]] = {}
    for row in rows.values():
        for name, value in row.items():
            kinds.setdefault(name, set()).add(
                type(value) if isinstance(value, bool | str) else float
            )
    for row in rows.values():
        for name, value in row.items():
            if isinstance(value, str):
                row[name] = without_credentials(value)
            elif len(kinds[name]) > 1:
                row[name] = json.dumps(value)
    return rows


def experiment(
    name: str, created: float, rows: Mapping[str, Mapping[str, Value]], metrics: Mapping[str, str]
) -> api_pb2.Experiment:
    """Returns the message that declares the columns."""
    found = api_pb2.Experiment(name=name, time_created_secs=created)
    for column in sorted({name for row in rows.values() for name in row}):
        values = [row[column] for row in rows.values() if column in row]
        distinct = sorted(set(values))
        differs = len(distinct) > 1 or len(values) < len(rows)
        info = found.hparam_infos.add(name=column, differs=differs)
        if isinstance(distinct[0], bool | str):
            is_text = isinstance(distinct[0], str)
            info.type = api_pb2.DATA_TYPE_STRING if is_text else api_pb2.DATA_TYPE_BOOL
            info.domain_discrete.extend(distinct)
        else:
            info.type = api_pb2.DATA_TYPE_FLOAT64
            info.domain_interval.min_value = distinct[0]
            info.domain_interval.max_value = distinct[-1]
    for tag, title in metrics.items():
        found.metric_infos.add(display_name=title).name.tag = tag
    return found


def session_start(group: str, began: float, parameters: Mapping[str, Value]) -> SessionStartInfo:
    """Returns the message that makes a point a row; points of one group would become one row."""
    info = SessionStartInfo(group_name=group, start_time_secs=began)
    for name, value in parameters.items():
        kind = {bool: "bool", str: "string"}.get(type(value), "number")
        setattr(info.hparams[name], f"{kind}_value", value)
    return info


def _parameters(series: Series) -> dict[str, Value]:
    point = series.point
    found: list[tuple[str, tuple[str, ...], Any]] = [
        ("benchmark", (), series.name.partition("[")[0]),
        ("checkpoint", (), point.checkpoint.label),
        ("checkpoint_bytes", (), point.checkpoint.num_bytes),
        ("mesh", (), None if point.mesh is None else point.mesh.label),
        ("devices", (), point.num_devices),
    ]
    found += [("options", path, value) for path, value in _flatten(point.options)]
    rest = series_fields(series, exclude=_NOT_SWEPT)
    found += [(path[0], path[1:], value) for path, value in _flatten(rest)]
    short = Counter(".".join(path) or block for block, path, _ in found)
    named = {}
    for block, path, value in found:
        name = ".".join(path) or block
        named[name if short[name] == 1 else ".".join((block, *path))] = value
    return {
        name: value if isinstance(value, bool | int | float | str) else json.dumps(value)
        for name, value in named.items()
        if value is not None
    }


def series_fields(series: Series, *, exclude: set[str]) -> dict[str, Any]:
    """Returns the fields of a series' point as plain data and, of an arm, its pair and itself."""
    fields = series.point.model_dump(mode="json", exclude=exclude)
    if isinstance(series.entry, Pair):
        fields |= {"pair": series.entry.id, "arm": series.arm}
    return fields


def _flatten(
    values: Mapping[str, Any], prefix: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, (*prefix, str(name)))
        else:
            yield (*prefix, str(name)), value


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


_GIB = 2**30
_HEADLINE: Final = (
    "2_save_breakdown/",
    "3_load_breakdown/",
    "4_throughput/",
    "7_memory/device_hbm_peak_diff_gb",
    "8_jax/cache_hit_rate",
)
"""Metrics that are aggregated as times are."""
_ORBAX_TOTALS: Final = ("5_inventory/save_total_gb", "5_inventory/load_total_gb")


@dataclasses.dataclass(frozen=True, slots=True)
class MetricSeries:
    """One metric of one operation of one point."""

    metric: str  # name of the metric
    unit: str  # unit of all values here
    # for each repeat, the value of each host that has one
    repeats: list[dict[int, float]] = dataclasses.field(default_factory=list)

    def reduced(self, reduce: Callable[[Iterable[float]], float]) -> list[float]:
        """One value per repeat, made from those of its hosts."""
        return [reduce(repeat.values()) for repeat in self.repeats]

    def over_hosts(self) -> list[float]:
        """One value per repeat: of the worst host, or the mean where neither way is better."""
        try:
            better = lookup(self.metric).better
        except KeyError:
            better = "none"
        return self.reduced({"lower": max, "higher": min}.get(better, statistics.fmean))

    def aggregates(self) -> dict[str, float]:
        """Returns the aggregates by suffix of the tag.

        `median` is that of `over_hosts`. Times and headline metrics have the others too, over all
        repeats and hosts. A rate has no `mean`: the mean of rates is not the rate of the whole.
        """
        values = sorted(value for repeat in self.repeats for value in repeat.values())
        if any(map(math.isnan, values)):
            return {"median": math.nan}
        found = {"median": statistics.median(self.over_hosts())}
        if self.unit in ("s", "ms") or self.metric.startswith(_HEADLINE):
            if not self.unit.endswith("/s"):
                found["mean"] = statistics.fmean(values)
            found |= {"min": values[0], "max": values[-1]}
            found |= {"p50": cut(values, 1, 2), "p99": cut(values, 99, 100)}
        return found


Metrics = dict[tuple[str, str], MetricSeries]
"""By operation, with its `[occurrence]` from the second on, and metric."""


def collect(repeats: Iterable[Repeat]) -> Metrics:
    """Gathers, in order, the samples of the repeats that passed on every host."""
    found: Metrics = {}
    for repeat in repeats:
        if not repeat.counts:
            continue
        here: dict[tuple[str, str], dict[int, float]] = {}
        for host, record in sorted(repeat.records.items()):
            for sample in record.samples:
                key = block_name(sample.operation, sample.occurrence), sample.metric
                if key not in found:
                    found[key] = MetricSeries(sample.metric, sample.unit)
                here.setdefault(key, {})[host] = sample.value
        for key, of_hosts in here.items():
            found[key].repeats.append(of_hosts)
    return found


def throughput(metrics: Metrics, operation: str) -> float | None:
    """Returns all bytes over all seconds of the slowest hosts, in GiB/s; never a mean of rates."""
    seconds, moved = metrics[operation, TIME].reduced(max), moved_bytes(metrics, operation)
    if len(moved) != len(seconds) or sum(seconds) == 0:
        return None
    return sum(moved) / _GIB / sum(seconds)


def moved_bytes(metrics: Metrics, operation: str) -> list[float]:
    """Returns the bytes of each repeat, over all hosts; empty when nobody says how many."""
    # Each host states the bytes of the whole operation, so hosts do not add up.
    if any(metric == BYTES for _, metric in metrics):
        # The author says which operations move bytes; Orbax's totals say nothing of the others.
        stated = metrics.get((operation, BYTES))
        return [] if stated is None else stated.reduced(max)
    for metric in _ORBAX_TOTALS:
        if (operation, metric) in metrics:
            return [value * _GIB for value in metrics[operation, metric].reduced(max)]
    return []
