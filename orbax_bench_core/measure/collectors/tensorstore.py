"""Collector `tensorstore`: what TensorStore's key-value stores and caches count in a block."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from orbax_bench_core.measure.collectors import store_metrics
from orbax_bench_core.measure.collectors.base import Difference, Reading
from orbax_bench_core.measure.collectors.store_metrics import StoreMetric
from orbax_bench_core.measure.definition import Family, Metric

_STORES, _CACHES = PREFIXES = ("/tensorstore/kvstore/", "/tensorstore/cache/")
_FILES, _FUTURES = f"{_STORES}file/", "/tensorstore/futures/"
CHANGED = Metric(
    name="6_tensorstore/changed_metric_count",
    unit="count",
    better="none",
    description="TensorStore key-value store and cache metrics that changed during the block",
    collector="tensorstore",
)
METRICS = (CHANGED,)

_NAMESPACE = "6_tensorstore/"
_STEMS = tuple(prefix.strip("/").replace("/", "_") + "_" for prefix in PREFIXES)
_QUANTILES = {"p50": 0.5, "p99": 0.99}
_SUFFIXES = {
    "_value_diff": "Change of {}, summed over its labels",
    "_count_diff": "New observations of {}, summed over its labels",
    "_mean": "Mean of the observations of {} that the block added, over all labels",
    **{
        f"_{name}": f"At least {100 * share:.0f} % of the observations of {{}} that the block "
        "added lie below this upper bound, a bucket's end: the true value may be half of it, or "
        "less"
        for name, share in _QUANTILES.items()
    },
}
FAMILIES = tuple(
    Family(
        pattern=f"{_NAMESPACE}<TensorStore's name with _ for />{suffix}",
        units="count" if suffix == "_count_diff" else "ms, bytes or count, as the name ends",
        description=meaning.format("a metric under " + " or ".join(PREFIXES)),
        collector="tensorstore",
        example=f"{_NAMESPACE}tensorstore_kvstore_file_read_latency_ms{suffix}",
    )
    for suffix, meaning in _SUFFIXES.items()
)
# The suffixes that tell how large an observation was, rather than how many there were.
_LEVELS = ("_mean", *(f"_{name}" for name in _QUANTILES))


class _State(NamedTuple):
    fingerprint: tuple[object, ...]
    totals: dict[str, StoreMetric]


_latest = _State((), {})


class TensorStore(Difference[_State]):
    """Differences of TensorStore's metrics, end less start, of those that changed."""

    def __init__(self) -> None:
        import tensorstore

        self._library = tensorstore

    def _read(self) -> _State:
        # Most blocks find the metrics as the last one left them. The fingerprint that says so is
        # read first: a change between the two reads makes the next one differ.
        global _latest  # noqa: PLW0603  # a cache of the process-wide state that the library reports
        fingerprint, latest = _fingerprint(self._library), _latest
        if latest.fingerprint != fingerprint:
            stores, caches = (store_metrics.read(self._library, prefix) for prefix in PREFIXES)
            latest = _latest = _State(fingerprint, stores | caches)
        return latest

    def _compare(self, before: _State, after: _State) -> list[Reading]:
        if after is before:
            return [Reading(CHANGED.name, 0.0, CHANGED.unit)]
        return _differences(before.totals, after.totals)


def resolve(name: str) -> Metric | None:
    """The metric of a name that this collector can emit for a TensorStore metric, else None."""
    if not name.startswith(_NAMESPACE):
        return None
    path = name.removeprefix(_NAMESPACE)
    if not path.startswith(_STEMS):
        return None
    for suffix, meaning in _SUFFIXES.items():
        stem = path.removesuffix(suffix)
        if stem != path:
            return Metric(
                name=name,
                unit="count" if suffix == "_count_diff" else _unit(stem),
                better="lower" if stem.endswith("_latency_ms") and suffix in _LEVELS else "none",
                description=meaning.format(f"TensorStore's {stem}"),
                collector="tensorstore",
            )
    return None


def _fingerprint(library: Any) -> tuple[object, ...]:
    """Returns a stamp that differs once a store or a cache has counted."""
    # The metrics of all stores cost three times as much, and hardly any process uses more than two
    # of them. A request to any store is a future of TensorStore: it is counted as alive until it
    # has ended, and then by its callbacks, in numbers that only grow. Only a request of the `file`
    # store can end before anyone asks for a callback, so the metrics of that one are read
    # themselves. Text rounds sums, but equal text means equal counts, hence equal totals.
    as_text = library.experimental_collect_prometheus_format_metrics
    futures = as_text(_FUTURES)  # nothing where a release does not count them
    stores = as_text(_FILES if futures else _STORES)
    return futures, stores, as_text(_CACHES)


def _differences(before: dict[str, StoreMetric], after: dict[str, StoreMetric]) -> list[Reading]:
    found: list[Reading] = []
    changed = 0
    for stem in sorted(after.keys() | before.keys()):
        old, new = before.get(stem, StoreMetric()), after.get(stem, StoreMetric())
        if old == new:
            continue
        changed += 1
        name, unit = _NAMESPACE + stem, _unit(stem)
        if new.value != old.value:
            found.append(Reading(f"{name}_value_diff", float(new.value - old.value), unit))
        if new.observed != old.observed:
            added = new.observed - old.observed
            found.append(Reading(f"{name}_count_diff", float(added), "count"))
            found.append(Reading(f"{name}_mean", (new.total - old.total) / added, unit))
            for label, share in _QUANTILES.items():
                bound = quantile_bound(old.buckets, new.buckets, share)
                if bound is not None:
                    found.append(Reading(f"{name}_{label}", bound, unit))
    return [Reading(CHANGED.name, float(changed), CHANGED.unit), *found]


def quantile_bound(
    before: Mapping[float, int], after: Mapping[float, int], share: float
) -> float | None:
    """Returns an upper bound of a quantile of the observations between two readings.

    Args:
        before: Observations by the upper end of their bucket, at the first reading.
        after: The same at the second one.
        share: Which quantile, such as 0.99.

    Returns:
        The smallest end of a bucket below which at least `share` of them lie; None without any.
    """
    added = {end: count - before.get(end, 0) for end, count in sorted(after.items())}
    needed = math.ceil(share * sum(added.values()))
    if needed <= 0:
        return None
    for end, count in added.items():
        needed -= count
        if needed <= 0:
            return end
    return None


def _unit(stem: str) -> str:
    if stem.endswith("_ms"):
        return "ms"
    is_bytes = stem.endswith(("_bytes_read", "_bytes_written", "_bytes", "_size"))
    return "bytes" if is_bytes else "count"
