"""Events that Orbax and JAX report about themselves through `jax.monitoring`."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from orbax_bench_core.measure import event_table, events, observers
from orbax_bench_core.measure.collectors.base import Reading
from orbax_bench_core.measure.definition import Metric
from orbax_bench_core.recorder import time_waits

CACHE_HIT_RATE = Metric(
    name="8_jax/cache_hit_rate",
    unit="ratio",
    better="higher",
    description="Compilation cache hits / (hits + misses); needs a persistent cache",
    collector="jax_monitoring",
)
METRICS = (*event_table.METRICS, CACHE_HIT_RATE)

# Appending to a list is atomic, so events need no lock: they are handled inside the clock.
_Log = list[tuple[events.Kind, str, float]]

Heard = dict[tuple[str, tuple[tuple[str, str | int], ...]], None]
"""Events of Orbax with their labels, each combination once, in the order of their first firing."""

_ORBAX = ("/jax/orbax/", "/jax/checkpoint/")

_lock = threading.Lock()
_listening = False
_open: tuple[_Log, ...] = ()
_heard: observers.Slot[Heard] = observers.Slot("hearing_events")


@contextmanager
def hearing_events() -> Iterator[Heard]:
    """Keeps which events Orbax fires, with the labels that samples have no place for.

    What it yields grows while the context is open. This does not nest.
    """
    _listen()
    found: Heard = {}
    with _heard.holding(found):
        yield found


def _hear(event: str, labels: dict[str, str | int]) -> None:
    found = _heard.get()
    if found is not None and event.startswith(_ORBAX):
        found[event, tuple(sorted(labels.items()))] = None


class JaxMonitoring:
    """The `jax.monitoring` events that any thread fired while the block was open."""

    def __init__(self) -> None:
        _listen()
        self._log: _Log = []

    def start(self) -> None:
        """Begins to receive events."""
        global _open  # noqa: PLW0603  # replaced whole, so that listeners read it without a lock
        with _lock:
            _open = (*_open, self._log)

    def stop(self) -> list[Reading]:
        """Ends receiving, and sums up each event."""
        global _open  # noqa: PLW0603  # as in start
        with _lock:
            _open = tuple(log for log in _open if log is not self._log)
        fired: defaultdict[tuple[events.Kind, str], list[float]] = defaultdict(list)
        for kind, event, value in self._log:
            if events.is_metric(kind, event):
                fired[kind, event].append(float(value))
        found: list[Reading] = []
        for (kind, event), values in fired.items():
            metric = events.metric_of(kind, event)
            total = values[-1] if metric.aggregate == "last" else sum(values)
            found.append(Reading(metric.name, total, metric.unit))
            if len(values) > 1 and kind != "occurrence":
                found.append(Reading(f"{metric.name}_count", float(len(values)), "count"))
                found.append(Reading(f"{metric.name}_max", max(values), metric.unit))
                found.append(Reading(f"{metric.name}_last", values[-1], metric.unit))
        return found + _cache_hit_rate(found)


def _listen() -> None:
    global _listening  # noqa: PLW0603  # the listeners are process-wide
    with _lock:
        if _listening:
            return
        import jax.monitoring

        jax.monitoring.register_event_duration_secs_listener(_on_duration)
        if hasattr(jax.monitoring, "register_scalar_listener"):  # JAX 0.5.0 knows no scalars
            jax.monitoring.register_scalar_listener(_on_scalar)
        jax.monitoring.register_event_listener(_on_event)
        time_waits(_on_duration)
        _listening = True


def _on_duration(event: str, duration_secs: float, **labels: str | int) -> None:
    _hear(event, labels)
    for log in _open:
        log.append(("duration", event, duration_secs))


def _on_scalar(event: str, value: float, **_: str | int) -> None:
    for log in _open:
        log.append(("scalar", event, value))


def _on_event(event: str, **labels: str | int) -> None:
    _hear(event, labels)
    for log in _open:
        log.append(("occurrence", event, 1))


def _cache_hit_rate(found: list[Reading]) -> list[Reading]:
    counts = {reading.metric: reading.value for reading in found}
    hits = counts.get(events.CACHE_HITS, 0.0)
    requests = hits + counts.get(events.CACHE_MISSES, 0.0)
    if not requests:
        return []
    return [Reading(CACHE_HIT_RATE.name, hits / requests, CACHE_HIT_RATE.unit)]
