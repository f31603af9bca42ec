"""Collectors by key, and how a block runs a list of them."""

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from orbax_bench_core.measure import observers
from orbax_bench_core.measure.collectors import (
    clocks,
    device_memory,
    jax_monitoring,
    kernel_counters,
    peak_rss,
    process_state,
    python_memory,
    rss,
    store_answers,
    tensorstore,
    thread_pool,
)
from orbax_bench_core.measure.collectors.base import Collector as Collector
from orbax_bench_core.measure.collectors.base import Reading as Reading
from orbax_bench_core.measure.collectors.clocks import TIME as TIME
from orbax_bench_core.measure.collectors.clocks import clock_readings as clock_readings
from orbax_bench_core.measure.collectors.device_memory import HBM_IN_USE as HBM_IN_USE
from orbax_bench_core.measure.collectors.jax_monitoring import Heard as Heard
from orbax_bench_core.measure.collectors.jax_monitoring import hearing_events as hearing_events
from orbax_bench_core.measure.collectors.process_state import ANON as ANON
from orbax_bench_core.measure.collectors.process_state import OPEN_FILES as OPEN_FILES
from orbax_bench_core.measure.collectors.process_state import RSS as RSS
from orbax_bench_core.measure.collectors.process_state import THREADS as THREADS
from orbax_bench_core.measure.collectors.rss import RSS_GROWTH as RSS_GROWTH
from orbax_bench_core.measure.collectors.store_answers import RETRIES as RETRIES
from orbax_bench_core.measure.collectors.store_answers import code_of as code_of
from orbax_bench_core.measure.definition import Family, Metric

# In the order of the defaults: the earlier, the nearer to the clock. First those whose counters
# move with every system call, and so with what the others do.
FACTORIES: Mapping[str, Callable[[], Collector]] = MappingProxyType(
    {
        "cpu": clocks.Cpu,
        "disk_io": kernel_counters.DiskIo,
        "page_faults": kernel_counters.PageFaults,
        "peak_rss": peak_rss.PeakRss,
        "rss": rss.Rss,
        "jax_monitoring": jax_monitoring.JaxMonitoring,
        "device_memory": device_memory.DeviceMemory,
        "tensorstore": tensorstore.TensorStore,
        "thread_pool": thread_pool.ThreadPool,
        "network": kernel_counters.Network,
        "cgroup_memory": kernel_counters.CgroupMemory,
        "tracemalloc": python_memory.Tracemalloc,
        "store_answers": store_answers.StoreAnswers,
        "process_state": process_state.ProcessState,
    }
)
_OPT_IN = ("tracemalloc", "store_answers", "process_state")
# The clock is no collector: it belongs to the block, inside of all of these.
KEYS: tuple[str, ...] = ("time", *FACTORIES)
DEFAULT_KEYS: tuple[str, ...] = tuple(key for key in KEYS if key not in _OPT_IN)

METRICS: tuple[Metric, ...] = (
    *clocks.METRICS,
    *kernel_counters.METRICS,
    *rss.METRICS,
    *peak_rss.METRICS,
    *process_state.METRICS,
    *jax_monitoring.METRICS,
    *device_memory.METRICS,
    *python_memory.METRICS,
    *tensorstore.METRICS,
    *thread_pool.METRICS,
    *store_answers.METRICS,
)
FAMILIES: tuple[Family, ...] = (*tensorstore.FAMILIES, *store_answers.FAMILIES)

_also: observers.Slot[tuple[str, ...]] = observers.Slot("also_collecting")

Running = Sequence[tuple[str, Collector]]
_FAILED: Final = object()


def also_collecting(*keys: str) -> contextlib.AbstractContextManager[None]:
    """Has every block of this process use further collectors, whatever its own are.

    They stand outermost, farthest from the clock. This does not nest.
    """
    return _also.holding(keys)


def resolve(name: str) -> Metric | None:
    """The metric of a name that a collector can emit and only a run can know, else None."""
    return tensorstore.resolve(name) or store_answers.resolve(name)


def start(keys: tuple[str, ...]) -> Running:
    """Constructs the collectors of `keys`, then starts them, the last key first."""
    # Those that started are returned in the order in which they are to stop; one that failed is
    # logged and left out.
    ready = [
        (key, made)
        for key in _check_keys((*keys, *(_also.get() or ())))
        if (made := observers.attempt("load collector", FACTORIES[key], None, key)) is not None
    ]
    started = [
        (key, collector)
        for key, collector in reversed(ready)
        if observers.attempt("start collector", collector.start, _FAILED, key) is not _FAILED
    ]
    return started[::-1]


def stop(running: Running) -> list[Reading]:
    """Stops collectors in order; one that fails is logged and gives no readings."""
    nothing: Sequence[Reading] = ()
    return [
        reading
        for key, collector in running
        for reading in observers.attempt("stop collector", collector.stop, nothing, key)
    ]


def notes(running: Running) -> list[str]:
    """What stopped collectors have to say beside their readings, line by line."""
    return [line for _, collector in running for line in getattr(collector, "notes", ())]


def check(keys: tuple[str, ...]) -> None:
    """Checks that every key is one of `KEYS`."""
    _check_keys(keys)


@functools.lru_cache(maxsize=256)  # blocks in a loop ask for the same keys again and again
def _check_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    for key in keys:
        if key not in KEYS:
            raise ValueError(_describe_unknown(key))
    return tuple(key for key in dict.fromkeys(keys) if key in FACTORIES)


def _describe_unknown(key: object) -> str:
    import difflib

    near = difflib.get_close_matches(str(key), KEYS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"unknown metric key {key!r}{hint} The keys are: {', '.join(KEYS)}"
