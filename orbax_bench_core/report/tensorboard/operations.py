"""The operations of one point: how long the slowest host took, and how much was moved."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from orbax_bench_core.report.tensorboard.series import Key, Series
from orbax_bench_core.results.summary import BYTES, TIME

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
    time: Series
    num_bytes: Sequence[float]
    costs: Mapping[str, Series]

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


def operations(series: Mapping[Key, Series]) -> list[Operation]:
    """Returns the operations among the series of one point, in the order in which they ended."""
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


def _moved(series: Mapping[Key, Series], operation: str) -> list[float]:
    # Each host states the bytes of the whole operation, so hosts do not add up.
    stated = series.get((operation, BYTES))
    if stated is not None:
        return [max(repeat.values()) for repeat in stated.repeats]
    if any(metric == BYTES for _, metric in series):
        return []  # the author says which operations move bytes, and this is none of them
    totals = (series.get((operation, metric)) for metric in _ORBAX_TOTALS)
    found = next((total for total in totals if total is not None), None)
    return [] if found is None else [max(repeat.values()) * _GIB for repeat in found.repeats]


def _costs(series: Mapping[Key, Series], operation: str) -> Iterator[tuple[str, Series]]:
    for title, metrics in _COSTS.items():
        for metric in metrics:
            if (operation, metric) in series:
                yield title, series[operation, metric]
                break
