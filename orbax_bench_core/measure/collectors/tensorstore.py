"""TensorStore's metrics: key-value stores and caches in a block, and its thread pool."""

import functools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from orbax_bench_core.measure.collectors import store_text
from orbax_bench_core.measure.collectors.base import Difference, Reading
from orbax_bench_core.measure.definition import Better, Family, Metric

# Number of observations by the upper end of their bucket; an end is itself outside its bucket.
Buckets = Mapping[float, int]

NO_BUCKETS: Buckets = MappingProxyType({})

_MULTIPLES = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}


def buckets_of(entry: Mapping[str, float]) -> Iterator[tuple[float, int]]:
    """Yields the upper end of each bucket in a histogram's entry, and the observations in it."""
    # A bucket begins where the one before it ends, at half of its own end. TensorStore 0.1.86
    # labels those from half a mebi on ("1M", ...) with twice their end, which still is an upper
    # bound.
    for label, count in entry.items():
        end = _end_of(label)
        if end is not None:
            yield end, int(count)


@functools.cache  # the labels are powers of two, and the names of a few fields
def _end_of(label: str) -> float | None:
    digits, multiple = label, 1
    if label[-1:] in _MULTIPLES:
        digits, multiple = label[:-1], _MULTIPLES[label[-1]]
    return float(digits) * multiple if digits.isdecimal() else None


def quantile_bound(before: Buckets, after: Buckets, share: float) -> float | None:
    """An upper bound of a quantile of the observations that came between two readings."""
    # It is the smallest end of a bucket below which at least `share` of them lie, such as 0.99;
    # None when there were none.
    added = {end: count - before.get(end, 0) for end, count in sorted(after.items())}
    needed = math.ceil(share * sum(added.values()))
    if needed <= 0:
        return None
    for end, count in added.items():
        needed -= count
        if needed <= 0:
            return end
    return None


_STORES, _CACHES = PREFIXES = ("/tensorstore/kvstore/", "/tensorstore/cache/")
_FILES, _FUTURES = f"{_STORES}file/", "/tensorstore/futures/"
CHANGED = Metric(
    name="6_tensorstore/changed_metric_count",
    unit="count",
    better="none",
    description="TensorStore key-value store and cache metrics that changed during the block",
    collector="tensorstore",
)

_NAMESPACE = "6_tensorstore/"
_STEMS = tuple(prefix.strip("/").replace("/", "_") + "_" for prefix in PREFIXES)
_QUANTILES = {"p50": 0.5, "p99": 0.99}
_SUFFIXES = {
    "_value_diff": "Change of {}, summed over its labels",
    "_count_diff": "New observations of {}, summed over its labels",
    "_mean": "Mean of the observations of {} that the block added, over all labels",
    **{
        f"_{name}": f"At least {share:.0%} of the observations of {{}} that the block added lie "
        "below this upper bound, a bucket's end: the true value may be half of it, or less"
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


class _Totals(NamedTuple):
    """One TensorStore metric, summed over its labels."""

    value: float = 0  # counter or gauge
    observed: int = 0  # number of observations of a histogram
    total: float = 0  # sum of those observations
    buckets: Buckets = NO_BUCKETS  # how those observations are distributed


class _State(NamedTuple):
    fingerprint: tuple[object, ...]
    totals: dict[str, _Totals]


_latest = _State((), {})


class TensorStore(Difference[_State]):
    """Differences of TensorStore's metrics, end less start, of those that changed."""

    def __init__(self) -> None:
        import tensorstore

        self._library = tensorstore

    def _read(self) -> _State:
        return _read(self._library)

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


def _read(library: Any) -> _State:
    # Most blocks find the metrics as the last one left them. The fingerprint that says so is read
    # first: a change between the two reads makes the next one differ.
    global _latest  # noqa: PLW0603  # a cache of the process-wide state that the library reports
    fingerprint, latest = _fingerprint(library), _latest
    if latest.fingerprint != fingerprint:
        if store_text.as_text():
            totals = dict(_read_text(library))
        else:
            found = map(library.experimental_collect_matching_metrics, PREFIXES)
            totals = {
                metric["name"]: _sum_labels(metric["values"]) for one in found for metric in one
            }
        latest = _latest = _State(fingerprint, totals)
    return latest


def _fingerprint(library: Any) -> tuple[object, ...]:
    """Returns a stamp that differs once a store or a cache has counted, or is read otherwise."""
    # The metrics of all stores cost three times as much, and hardly any process uses more than two
    # of them. A request to any store is a future of TensorStore: it is counted as alive until it
    # has ended, and then by its callbacks, in numbers that only grow. Only a request of the `file`
    # store can end before anyone asks for a callback, so the metrics of that one are read
    # themselves. Text rounds sums, but equal text means equal counts, hence equal totals.
    as_text = library.experimental_collect_prometheus_format_metrics
    futures = as_text(_FUTURES)  # nothing where a release does not count them
    stores = as_text(_FILES if futures else _STORES)
    return store_text.as_text(), futures, stores, as_text(_CACHES)


def _read_text(library: Any) -> Iterator[tuple[str, _Totals]]:
    for prefix in PREFIXES:
        for name, read in store_text.read(library, prefix).items():
            yield name, _Totals(read.value, read.observed, read.total, read.buckets)


def _sum_labels(entries: list[dict[str, Any]]) -> _Totals:
    value: float = 0
    observed = 0
    total: float = 0
    buckets: Counter[float] = Counter()
    for entry in entries:
        number = entry.get("value")
        if isinstance(number, int | float):
            value += number
        if "count" in entry:
            observed += entry["count"]
            total += entry["count"] * entry["mean"]
            for end, count in buckets_of(entry):
                buckets[end] += count
    return _Totals(value, observed, total, buckets)


def _differences(before: dict[str, _Totals], after: dict[str, _Totals]) -> list[Reading]:
    found: list[Reading] = []
    changed = 0
    for path in sorted(after.keys() | before.keys()):
        old, new = before.get(path, _Totals()), after.get(path, _Totals())
        if old == new:
            continue
        changed += 1
        stem = path.strip("/").replace("/", "_")
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


def _unit(stem: str) -> str:
    if stem.endswith("_ms"):
        return "ms"
    is_bytes = stem.endswith(("_bytes_read", "_bytes_written", "_bytes", "_size"))
    return "bytes" if is_bytes else "count"


_POOL = "/tensorstore/thread_pool/"
_LIVE_FUTURES = "/tensorstore/futures/live"
_LATE = "Reported up to 20 ms late, so what comes at the end may count for the next block"
_MARK = "max_delay_ns"


def _metric(name: str, unit: str, better: Better, description: str) -> Metric:
    return Metric(f"6_tensorstore/{name}", unit, better, description, collector="thread_pool")


QUEUE = _metric(
    "thread_pool_queue_s",
    "s",
    "lower",
    f"Time that tasks waited for a thread, summed over tasks. {_LATE}",
)
WORK = _metric(
    "thread_pool_work_s",
    "s",
    "none",
    "Time that tasks ran, summed over threads; a lower bound, because TensorStore 0.1.86 counts "
    f"only the last task before each of its reports. {_LATE}",
)
MAX_DELAY = _metric(
    "thread_pool_max_delay_s",
    "s",
    "lower",
    "Longest time that one task waited for a thread; given when it is the longest of the process "
    f"so far, because TensorStore keeps nothing else. {_LATE}",
)
STARTED = _metric("thread_pool_started_count", "count", "none", "Threads that the pool started")
STEALS = _metric(
    "thread_pool_steal_count", "count", "none", "Tasks that a thread took over from another"
)
LIVE = _metric(
    "futures_live_count",
    "count",
    "none",
    "Futures not yet done when the block ended; some stay so in an idle process",
)
METRICS = (CHANGED, QUEUE, WORK, MAX_DELAY, STARTED, STEALS, LIVE)

_SUMS = (
    (QUEUE, "total_queue_time_ns", 1e-9),
    (WORK, "work_time_ns", 1e-9),
    (STARTED, "started", 1.0),
    (STEALS, "steal_count", 1.0),
)


class _PoolState(NamedTuple):
    fingerprint: list[str]
    values: dict[str, float]


_latest_pool = _PoolState([], {})


class ThreadPool(Difference[_PoolState]):
    """Differences of the metrics of TensorStore's threads, of those that changed."""

    def __init__(self) -> None:
        import tensorstore

        self._library: Any = tensorstore

    def _read(self) -> _PoolState:
        return _read_pool(self._library)

    def _compare(self, before: _PoolState, after: _PoolState) -> list[Reading]:
        found: list[Reading] = []
        for metric, name, scale in _SUMS:
            grown = after.values.get(name, 0.0) - before.values.get(name, 0.0)
            if grown:
                found.append(Reading(metric.name, grown * scale, metric.unit))
        mark = after.values.get(_MARK, 0.0)
        if mark > before.values.get(_MARK, 0.0):
            found.append(Reading(MAX_DELAY.name, mark * 1e-9, MAX_DELAY.unit))
        live = _collect(self._library, _LIVE_FUTURES)
        return found + [Reading(LIVE.name, value, LIVE.unit) for value in live.values()]


def _read_pool(library: Any) -> _PoolState:
    # As the `tensorstore` collector does it: the text costs a third of the numbers, and only what
    # changed is read twice. It rounds to six digits, so a change below that counts for the block
    # in which the next change comes.
    global _latest_pool  # noqa: PLW0603  # a cache of the process-wide state that the library reports
    fingerprint = library.experimental_collect_prometheus_format_metrics(_POOL)
    latest = _latest_pool
    if latest.fingerprint != fingerprint:
        latest = _latest_pool = _PoolState(fingerprint, _collect(library, _POOL))
    return latest


def _collect(library: Any, prefix: str) -> dict[str, float]:
    if store_text.as_text():
        return {
            name.removeprefix(store_text.name_of(prefix)): read.value
            for name, read in store_text.read(library, prefix).items()
        }
    # The library leaves out what never counted anything. A gauge that keeps nothing but its largest
    # value has no other.
    return {
        metric["name"].rpartition("/")[2]: float(value)
        for metric in library.experimental_collect_matching_metrics(prefix)
        for entry in metric["values"]
        if (value := entry.get("value", entry.get("max_value"))) is not None
    }
