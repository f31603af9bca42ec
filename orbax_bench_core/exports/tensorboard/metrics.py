"""Metrics of a point for TensorBoard: a value per repeat and host, and what is made of them."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable
from typing import Final

from orbax_bench_core.gate import cut
from orbax_bench_core.measure import BYTES, TIME, block_name, lookup
from orbax_bench_core.records import Repeat

_GIB: Final = 2**30
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
    """Returns all bytes over all seconds of the slowest hosts, in GiB/s; never a mean of rates.

    Returns:
        GiB/s; None if not every repeat says how many bytes it moved.
    """
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
