"""Registry of metrics by name."""

import functools
from collections.abc import Mapping
from types import MappingProxyType

from orbax_bench_core.measure import collectors, definition, events, training
from orbax_bench_core.measure.definition import Family, Metric

NAMESPACES: Mapping[str, str] = MappingProxyType(
    {
        "0_basics": "Wall-clock and processor time, and growth of host memory",
        "2_save_breakdown": "Where the time of a save went",
        "3_load_breakdown": "Where the time of a load went",
        "4_throughput": "Bytes per second",
        "5_inventory": "How much was saved and loaded",
        "6_tensorstore": "TensorStore's key-value stores, caches and threads",
        "6_io": "Bytes that reached or left storage and network, of all processes",
        "7_memory": "Memory of the host, of devices and of Python",
        "7_overhead": "Synchronization, checkpoint management and what training loses to them",
        "8_jax": "Compilation and its cache",
        "9_other": "Orbax events that have no home yet",
    }
)
FAMILIES: tuple[Family, ...] = (*collectors.FAMILIES, *events.FAMILIES)

_BUILT_IN = (*definition.METRICS, *training.METRICS, *collectors.METRICS)

_metrics: dict[str, Metric] = {}


def register(metric: Metric) -> Metric:
    """Adds a metric to those that reports know by unit and direction, and returns it.

    Registering the same object twice changes nothing.

    Args:
        metric: Named `<namespace>/<name>`, with a namespace of `NAMESPACES`.

    Raises:
        ValueError: The name has another form, or another metric has it.
    """
    if metric.namespace not in NAMESPACES or not metric.name.partition("/")[2]:
        raise ValueError(
            f"metric {metric.name!r} must be named '<namespace>/<name>' with a namespace of: "
            f"{', '.join(NAMESPACES)}"
        )
    if _metrics.setdefault(metric.name, metric) is not metric:
        taken_by = _metrics[metric.name].collector
        raise ValueError(
            f"metric {metric.name!r} is registered already, by collector {taken_by!r}; "
            f"give this one another name"
        )
    return metric


def lookup(name: str) -> Metric:
    """Finds a metric by its name.

    Names that only a run can know resolve too: TensorStore's (`6_tensorstore/...`), events without
    a home (`9_other/...`) and the `_count`, `_max` and `_last` of events that fired repeatedly.

    Returns:
        The metric. For `9_other` names the unit is inferred from the name; the unit that stands
        beside a sample is the one to believe.

    Raises:
        KeyError: No collector emits that name.
    """
    metric = _metrics.get(name) or collectors.resolve(name) or events.resolve(name)
    if metric is None:
        raise KeyError(f"unknown metric {name!r}{_suggestion(name)}")
    return metric


def all_metrics() -> tuple[Metric, ...]:
    """Every registered metric, in the order of the namespaces, then by name."""
    order = {namespace: position for position, namespace in enumerate(NAMESPACES)}
    return tuple(
        sorted(_metrics.values(), key=lambda metric: (order[metric.namespace], metric.name))
    )


@functools.lru_cache(maxsize=1024)  # readers of samples ask for one unknown name again and again
def _suggestion(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, _metrics, n=3)
    return f"; nearest: {', '.join(near)}" if near else ""


for _metric in _BUILT_IN:
    register(_metric)
