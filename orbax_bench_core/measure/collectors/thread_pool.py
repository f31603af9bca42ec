"""Collector `thread_pool`: the threads of TensorStore, and its futures that are not done."""

import functools
from typing import Any, NamedTuple

from orbax_bench_core.measure.collectors import store_metrics
from orbax_bench_core.measure.collectors.base import Difference, Reading
from orbax_bench_core.measure.collectors.store_metrics import StoreMetric
from orbax_bench_core.measure.definition import Metric

_POOL = "/tensorstore/thread_pool/"
_NAME = "tensorstore_thread_pool_"
_LIVE_FUTURES = "/tensorstore/futures/live"
_LATE = "Reported up to 20 ms late, so what comes at the end may count for the next block"
_MARK = "max_delay_ns"


_metric = functools.partial(Metric, collector="thread_pool")
QUEUE = _metric(
    "6_tensorstore/thread_pool_queue_s",
    "s",
    "lower",
    f"Time that tasks waited for a thread, summed over tasks. {_LATE}",
)
WORK = _metric(
    "6_tensorstore/thread_pool_work_s",
    "s",
    "none",
    "Time that tasks ran, summed over threads; a lower bound, because TensorStore 0.1.86 counts "
    f"only the last task before each of its reports. {_LATE}",
)
MAX_DELAY = _metric(
    "6_tensorstore/thread_pool_max_delay_s",
    "s",
    "lower",
    "Longest time that one task waited for a thread; given when it is the longest of the process "
    f"so far, because TensorStore keeps nothing else. {_LATE}",
)
STARTED = _metric(
    "6_tensorstore/thread_pool_started_count", "count", "none", "Threads that the pool started"
)
STEALS = _metric(
    "6_tensorstore/thread_pool_steal_count",
    "count",
    "none",
    "Tasks that a thread took over from another",
)
LIVE = _metric(
    "6_tensorstore/futures_live_count",
    "count",
    "none",
    "Futures not yet done when the block ended; some stay so in an idle process",
)
METRICS = (QUEUE, WORK, MAX_DELAY, STARTED, STEALS, LIVE)

_SUMS = (
    (QUEUE, "total_queue_time_ns", 1e-9),
    (WORK, "work_time_ns", 1e-9),
    (STARTED, "started", 1.0),
    (STEALS, "steal_count", 1.0),
)


class _State(NamedTuple):
    fingerprint: list[str]
    metrics: dict[str, StoreMetric]

    def value(self, name: str) -> float:
        return self.metrics.get(_NAME + name, StoreMetric()).value


_latest = _State([], {})


class ThreadPool(Difference[_State]):
    """Differences of the metrics of TensorStore's threads, of those that changed."""

    def __init__(self) -> None:
        import tensorstore

        self._library: Any = tensorstore

    def _read(self) -> _State:
        # The text rounds to six digits, so a change below that counts for the block in which the
        # next change comes.
        global _latest  # noqa: PLW0603  # a cache of the process-wide state that the library reports
        fingerprint = self._library.experimental_collect_prometheus_format_metrics(_POOL)
        latest = _latest
        if latest.fingerprint != fingerprint:
            latest = _latest = _State(fingerprint, store_metrics.parse(fingerprint))
        return latest

    def _compare(self, before: _State, after: _State) -> list[Reading]:
        found: list[Reading] = []
        for metric, name, scale in _SUMS:
            grown = after.value(name) - before.value(name)
            if grown:
                found.append(Reading(metric.name, grown * scale, metric.unit))
        mark = after.value(_MARK)
        if mark > before.value(_MARK):
            found.append(Reading(MAX_DELAY.name, mark * 1e-9, MAX_DELAY.unit))
        live = store_metrics.read(self._library, _LIVE_FUTURES)
        return found + [Reading(LIVE.name, metric.value, LIVE.unit) for metric in live.values()]
