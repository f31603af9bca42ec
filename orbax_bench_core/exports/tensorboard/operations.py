"""Operations of one point: times of the slowest host, bytes moved, costs on each host."""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload

from orbax_bench_core.measure import BYTES, TIME, Better, lookup
from orbax_bench_core.records import Layout, Repeat

if TYPE_CHECKING:
    import numpy as np

    _Ordered = Sequence[float] | np.ndarray

Key = tuple[str, str]
"""Operation, with its `[occurrence]` from the second on, and metric."""

THROUGHPUT = "4_throughput/operation_gbps"
_GIB = 2**30
_ORBAX_TOTALS = ("5_inventory/save_total_gb", "5_inventory/load_total_gb")
_STORES = ("file", "gcs", "gcs_grpc", "s3")
_STORE_METRIC = "6_tensorstore/tensorstore_kvstore_{store}_bytes_{direction}_value_diff"

_COSTS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "written by TensorStore": [
            _STORE_METRIC.format(store=store, direction="written") for store in _STORES
        ],
        "read by TensorStore": [
            _STORE_METRIC.format(store=store, direction="read") for store in _STORES
        ],
        "written to disk": ["6_io/disk_write_bytes"],
        "read from disk": ["6_io/disk_read_bytes"],
        "sent by network": ["6_io/network_transmit_bytes"],
        "received by network": ["6_io/network_receive_bytes"],
        "CPU time": ["0_basics/cpu_s"],
        "peak memory gained": ["7_memory/host_peak_rss_diff_mb"],
        "peak HBM gained": ["7_memory/device_hbm_peak_diff_gb"],
    }
)

ASKED: Final = frozenset(
    {TIME, BYTES, *_ORBAX_TOTALS, *(metric for metrics in _COSTS.values() for metric in metrics)}
)
"""Metrics that operations are made of."""


class OneHost(Sequence[Mapping[int, float]]):
    """Values of one metric on the one host of each repeat, as `MetricSeries.repeats` has them.

    Attributes:
        hosts: The host of each repeat.
        values: The value of each repeat.
    """

    def __init__(self, hosts: Sequence[int], values: list[float]) -> None:
        """Takes the host of each repeat, and its value."""
        self.hosts, self.values = hosts, values

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, place: int) -> Mapping[int, float]: ...
    @overload
    def __getitem__(self, place: slice) -> OneHost: ...
    def __getitem__(self, place: int | slice) -> Mapping[int, float] | OneHost:
        if isinstance(place, slice):
            return OneHost(self.hosts[place], self.values[place])
        return {self.hosts[place]: self.values[place]}


class MetricSeries(NamedTuple):  # which takes a third of the time of a frozen data class
    """One metric of one operation of one point.

    Attributes:
        operation: Name of the operation, with its `[occurrence]` from the second on.
        metric: Name of the metric.
        unit: Unit of all values here.
        repeats: For each repeat, the value of each host that has one.
    """

    operation: str
    metric: str
    unit: str
    repeats: Sequence[Mapping[int, float]]

    @property
    def tag(self) -> str:
        """The tag under which TensorBoard shows it: `<operation>_<namespace>/<metric>`."""
        return f"{self.operation}_{self.metric}"

    @property
    def values(self) -> list[float]:
        """Every value, of all repeats and hosts."""
        if isinstance(self.repeats, OneHost):
            return self.repeats.values
        return [value for repeat in self.repeats for value in repeat.values()]

    @property
    def over_hosts(self) -> list[float]:
        """One value per repeat: that of the worst host, which all others wait for.

        The worst is the largest where lower is better, as for a time, and the smallest where higher
        is better. Where neither is, it is the mean over the hosts.
        """
        reduce = {"lower": max, "higher": min}.get(_direction(self.metric), statistics.fmean)
        return self.reduced(reduce)

    @property
    def hosts(self) -> list[int]:
        """The hosts that have a value, in order."""
        if isinstance(self.repeats, OneHost):
            return sorted(set(self.repeats.hosts))
        return sorted({host for repeat in self.repeats for host in repeat})

    def reduced(self, reduce: Callable[[Iterable[float]], float]) -> list[float]:
        """One value per repeat, made from those of its hosts; that of a single host is itself."""
        if isinstance(self.repeats, OneHost):
            return self.repeats.values
        return [reduce(repeat.values()) for repeat in self.repeats]

    def of_host(self, host: int) -> list[float]:
        """Every value of one host."""
        return [repeat[host] for repeat in self.repeats if host in repeat]

    def aggregates(self) -> dict[str, float]:
        """Returns the aggregates by suffix of the tag.

        `median` is that of `over_hosts`, over the repeats. `mean`, `min`, `max`, `p50` and `p99`
        are those of `values`, percentiles by linear interpolation. A rate has no `mean`: the mean
        of rates is not the rate of the whole. One value that is not a number makes all so.
        """
        values = sorted(self.values)
        if any(map(math.isnan, values)):
            return {"median": math.nan}
        found = {
            "median": statistics.median(self.over_hosts),
            "mean": statistics.fmean(values),
            "min": values[0],
            "max": values[-1],
            "p50": _percentile(values, 0.50),
            "p99": _percentile(values, 0.99),
        }
        return {name: found[name] for name in aggregates_of_unit(self.unit)}


def collect(repeats: Iterable[Repeat]) -> dict[Key, MetricSeries]:
    """Gathers the samples of the repeats that passed on every host; others never count.

    Args:
        repeats: The measured repeats of one point, in order.

    Returns:
        The series in the order in which their first samples were measured.
    """
    values: dict[Key, list[dict[int, float]]] = {}
    units: dict[Key, str] = {}
    for repeat in repeats:
        if not repeat.counts:
            continue
        here: dict[Key, dict[int, float]] = {}
        for host, (layout, found) in sorted(repeat.columns.items()):
            for key, unit, value in zip(layout.keys, layout.units, found, strict=True):
                here.setdefault(key, {})[host] = value
                units[key] = unit
        for key, of_hosts in here.items():
            values.setdefault(key, []).append(of_hosts)
    return {
        (operation, metric): MetricSeries(
            operation=operation, metric=metric, unit=units[operation, metric], repeats=repeats
        )
        for (operation, metric), repeats in values.items()
    }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Repeats on one host each that measured the same, each metric once, as those of most sweeps.

    Attributes:
        layout: What they measured.
        hosts: Host of each repeat.
        values: Values of each repeat, shape (repeats, samples).
    """

    layout: Layout
    hosts: Sequence[int]
    values: np.ndarray

    @classmethod
    def of(cls, counted: Sequence[Repeat]) -> Alike | None:
        """Returns repeats that count as such; None where they are not.

        Values that are no number, and negative zeros, which have an order of their own, are left to
        who takes them one by one.
        """
        import numpy as np

        if not counted or any(len(repeat.columns) != 1 for repeat in counted):
            return None
        found = [next(iter(repeat.columns.items())) for repeat in counted]
        layout = found[0][1].layout
        if any(columns.layout is not layout for _, columns in found):
            return None
        if len(set(layout.keys)) < len(layout.keys):
            return None
        values = np.array([columns.values for _, columns in found])
        if np.isnan(values).any() or (np.signbit(values) & (values == 0)).any():
            return None
        return cls(layout=layout, hosts=[host for host, _ in found], values=values)

    def series(self, of: Container[str] | None = None) -> dict[Key, MetricSeries]:
        """Returns the series of some metrics, by default of all."""
        keys, units = self.layout.keys, self.layout.units
        return {
            keys[place]: MetricSeries(
                *keys[place], units[place], OneHost(self.hosts, self.values[:, place].tolist())
            )
            for place, metric in enumerate(self.layout.metrics)
            if of is None or metric in of
        }

    def aggregates(self) -> np.ndarray:
        """Returns what `MetricSeries.aggregates` says of all series, one after the other."""
        import numpy as np

        values = self.values
        count, ordered = len(values), np.sort(values, axis=0)
        with np.errstate(invalid="ignore", over="ignore"):
            found = {
                "median": (ordered[(count - 1) // 2] + ordered[count // 2]) / 2,
                "mean": np.array([math.fsum(column) / count for column in values.T.tolist()]),
                "min": ordered[0],
                "max": ordered[-1],
                "p50": _percentile(ordered, 0.50),
                "p99": _percentile(ordered, 0.99),
            }
        table: np.ndarray = np.array([found[name] for name in AGGREGATES])
        rows, columns = _places(self.layout)
        return np.asarray(table[rows, columns])


AGGREGATES: Final = ("median", "mean", "min", "max", "p50", "p99")
"""Suffixes of aggregates, in their order."""


def aggregates_of_unit(unit: str) -> tuple[str, ...]:
    """Returns the aggregates that values have: the mean of rates is not the rate of the whole."""
    return tuple(name for name in AGGREGATES if name != "mean" or not unit.endswith("/s"))


@functools.lru_cache(maxsize=256)
def _places(layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Returns which aggregate of which sample each aggregated value of a layout is."""
    import numpy as np

    found = [
        (AGGREGATES.index(name), place)
        for place, unit in enumerate(layout.units)
        for name in aggregates_of_unit(unit)
    ]
    rows, columns = np.array(found, np.intp).reshape(-1, 2).T
    return rows, columns


def _direction(metric: str) -> Better:
    try:
        return lookup(metric).better
    except KeyError:
        return "none"


def _percentile(ordered: _Ordered, share: float) -> Any:
    """Returns a percentile of values in order, or of each column of them."""
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of one point, over the repeats that passed on every host.

    Attributes:
        name: Name of the operation, with its `[occurrence]` from the second on.
        time: Seconds on each host.
        num_bytes: Bytes that it moved, over all hosts, one value per repeat; empty when nobody says
            how many.
        costs: What else it took on each host, by what that is called; only what was measured.
    """

    name: str
    time: MetricSeries
    num_bytes: Sequence[float]
    costs: Mapping[str, MetricSeries]

    @property
    def seconds(self) -> list[float]:
        """Seconds of each repeat: those of its slowest host."""
        return self.time.over_hosts

    @property
    def throughput(self) -> float | None:
        """All bytes over all seconds of the slowest hosts, in GiB/s; never a mean of rates."""
        seconds = self.seconds
        if len(self.num_bytes) != len(seconds) or sum(seconds) == 0:
            return None
        return sum(self.num_bytes) / _GIB / sum(seconds)


def operations(series: Mapping[Key, MetricSeries]) -> list[Operation]:
    """Returns the operations among the series of one point, in the order in which they ended.

    Series of metrics that are not `ASKED` need not be there.
    """
    return [
        Operation(
            name=name,
            time=time,
            num_bytes=_moved(series, name),
            costs=dict(_costs(series, name)),
        )
        for (name, metric), time in series.items()
        if metric == TIME
    ]


def _moved(series: Mapping[Key, MetricSeries], operation: str) -> list[float]:
    # Each host states the bytes of the whole operation, so hosts do not add up.
    stated = series.get((operation, BYTES))
    if stated is not None:
        return stated.reduced(max)
    if any(metric == BYTES for _, metric in series):
        return []  # the author says which operations move bytes, and this is none of them
    totals = (series.get((operation, metric)) for metric in _ORBAX_TOTALS)
    found = next((total for total in totals if total is not None), None)
    return [] if found is None else [value * _GIB for value in found.reduced(max)]


def _costs(
    series: Mapping[Key, MetricSeries], operation: str
) -> Iterator[tuple[str, MetricSeries]]:
    for title, metrics in _COSTS.items():
        for metric in metrics:
            if (operation, metric) in series:
                yield title, series[operation, metric]
                break
