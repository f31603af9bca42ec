"""Metrics of `jax.monitoring` events: those of a table, and names for all others."""

import functools
import re
from typing import Literal

from orbax_bench_core.measure.definition import Aggregate, Better, Family, Metric
from orbax_bench_core.measure.event_table import BY_EVENT, METRICS

CACHE_HITS = "8_jax/cache_hits_count"
CACHE_MISSES = "8_jax/cache_misses_count"

Kind = Literal["duration", "scalar", "occurrence"]

_PREFIXES = (
    "/jax/orbax/",
    "/jax/checkpoint/",
    "/jax/compilation_cache/",
    "/jax/core/compile/",
    "/orbax/",  # of emergency managers
    "/orbax-bench/",  # waits that we time in Orbax
)
# Moments in epoch milliseconds: no quantity that could be summed, averaged or compared.
_MOMENT = re.compile(r"/(\w+_)?(start|end)_time$")
_DURATION = re.compile(r"(_secs?|duration)$")
_OTHER = "9_other/"
_BY_NAME = {metric.name: metric for metric in METRICS}
_REPEATED = {
    "_count": "How often the event fired",
    "_max": "Largest of the event's readings",
    "_last": "Last of the event's readings",
}
FAMILIES = (
    *(
        Family(
            pattern=f"<metric of an event>{suffix}",
            units="count" if suffix == "_count" else "that of the metric",
            description=f"{meaning}; given when it fired more than once in the block",
            collector="jax_monitoring",
            example=f"2_save_breakdown/blocking_s{suffix}",
        )
        for suffix, meaning in _REPEATED.items()
    ),
    Family(
        pattern=f"{_OTHER}<event without /jax/, with _ for />",
        units="s, GiB/s, bytes/s, GiB or count, as kind and name of the event say, or none",
        description="An event of Orbax or of JAX's compiler that has no home yet",
        collector="jax_monitoring",
        example=f"{_OTHER}orbax_write_new_stage_duration_secs",
    ),
)


def is_metric(kind: Kind, event: str) -> bool:
    """Whether an event belongs to Orbax or to compilation, and carries more than a moment."""
    if not event.startswith(_PREFIXES):
        return False
    # JAX announces each of its durations with a scalar of the same name: when it began.
    announces = kind == "scalar" and event.startswith("/jax/core/")
    return not announces and _MOMENT.search(event) is None


@functools.lru_cache(maxsize=1024)
def metric_of(kind: Kind, event: str) -> Metric:
    """The metric of an event for which `is_metric` holds; under `9_other` without a table entry."""
    # The kind says whether the event, such as `/jax/orbax/write/gbytes`, came with a duration in
    # seconds, with a scalar, or with nothing (then its readings are its occurrences).
    known = BY_EVENT.get(event)
    if known is not None:
        return known
    return _other(_OTHER + event.removeprefix("/jax").strip("/").replace("/", "_"), kind, event)


def event_metric(kind: Kind, event: str) -> Metric | None:
    """The metric of any event; None for one of others, and for a moment."""
    return metric_of(kind, event) if is_metric(kind, event) else None


def resolve(name: str) -> Metric | None:
    """The metric of a name that an event can give, else None."""
    known = _BY_NAME.get(name)
    if known is not None:
        return known
    for suffix, meaning in _REPEATED.items():
        base = resolve(name.removesuffix(suffix)) if name.endswith(suffix) else None
        if base is not None:
            return Metric(
                name=name,
                unit="count" if suffix == "_count" else base.unit,
                better="none" if suffix == "_count" else base.better,
                description=f"{meaning}, when it fired more than once: {base.description}",
                collector=base.collector,
                event=base.event,
            )
    if name.startswith(_OTHER) and name != _OTHER:
        return _other(name, "duration" if _DURATION.search(name) else "scalar", None)
    return None


def _other(name: str, kind: Kind, event: str | None) -> Metric:
    unit, better, aggregate = _guess(name, kind)
    return Metric(
        name=name,
        unit=unit,
        better=better,
        description=f"Event {event or name.removeprefix(_OTHER)}, which has no home yet",
        collector="jax_monitoring",
        event=event,
        aggregate=aggregate,
    )


def _guess(name: str, kind: Kind) -> tuple[str, Better, Aggregate]:
    # Before 0.11.20 Orbax reports rates as if they were durations.
    if name.endswith("gbytes_per_sec"):
        return "GiB/s", "higher", "last"
    if name.endswith("bytes_per_sec"):
        return "bytes/s", "higher", "last"
    if kind == "duration":
        return "s", "lower", "sum"
    if kind == "occurrence" or name.endswith("_count"):
        return "count", "none", "sum"
    if name.endswith(("_gbytes", "_gb")):
        return "GiB", "none", "sum"
    # A scalar of unknown meaning may be a state, which no sum describes.
    return "", "none", "last"
