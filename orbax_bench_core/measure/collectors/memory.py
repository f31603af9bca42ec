"""Memory of the local devices and of Python: live arrays, bytes in use, allocations, peaks."""

from __future__ import annotations

import functools
import threading
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from orbax_bench_core.measure.collectors.base import Difference, MetricGroup, Reading
from orbax_bench_core.measure.definition import Metric

if TYPE_CHECKING:
    import jax


_device = functools.partial(Metric, collector="device_memory")
LIVE_ARRAYS = _device(
    name="7_memory/jax_live_arrays_count_delta",
    unit="count",
    better="none",
    description="JAX arrays alive at the end less those alive at the start",
)
HBM_IN_USE = _device(
    name="7_memory/device_hbm_in_use_gb",
    unit="GiB",
    better="none",
    description=(
        "Device memory in use when the block ended, on the local device with most; absent on "
        "backends without statistics"
    ),
)
HBM_IN_USE_DIFF = _device(
    name="7_memory/device_hbm_in_use_diff_gb",
    unit="GiB",
    better="none",
    description="Growth of the device memory in use, on the local device where it grew most",
)
HBM_PEAK = _device(
    name="7_memory/device_hbm_peak_diff_gb",
    unit="GiB",
    better="lower",
    description=(
        "Rise of the process's peak of bytes in use, on the local device where it rose most; 0 "
        "when the block stayed below an earlier peak; absent on backends without it"
    ),
)
HBM_PEAK_IS_BOUND = _device(
    name="7_memory/device_hbm_peak_is_bound",
    unit="",
    better="none",
    description=(
        "1 when no device exceeded its earlier peak: then nothing is known of the block's own peak "
        "but that it was no higher. JAX cannot reset the mark. 0 when a device set a new one"
    ),
)
_DEVICES = MetricGroup(HBM_IN_USE, HBM_IN_USE_DIFF, HBM_PEAK, HBM_PEAK_IS_BOUND)

_IN_USE = "bytes_in_use"
_PEAK = "peak_bytes_in_use"

_Stats = Mapping[str, int]


class _State(NamedTuple):
    arrays: int
    stats: Mapping[jax.Device, _Stats]


_NO_BACKEND = _State(0, {})


class DeviceMemory(Difference[_State]):
    """Live arrays and device memory, end less start.

    It never initializes a JAX backend: `jax.distributed.initialize` must be able to come later.
    """

    def __init__(self) -> None:
        import jax
        from jax._src import xla_bridge

        self._live_arrays: Callable[[], Sequence[object]] = jax.live_arrays
        self._has_backend = xla_bridge.backends_are_initialized

    def _read(self) -> _State:
        if not self._has_backend():
            return _NO_BACKEND
        return _State(
            len(self._live_arrays()),
            {device: device.memory_stats() or {} for device in _devices_with_peaks()},
        )

    def _compare(self, before: _State, after: _State) -> list[Reading]:
        if after is _NO_BACKEND:
            return []
        arrays = Reading(LIVE_ARRAYS.name, float(after.arrays - before.arrays), LIVE_ARRAYS.unit)
        if not after.stats:
            return [arrays]
        in_use = max(stats[_IN_USE] for stats in after.stats.values())
        grown, risen = _growth(before, after, _IN_USE), _growth(before, after, _PEAK)
        return [
            arrays,
            *_DEVICES.readings(in_use / 2**30, grown / 2**30, risen / 2**30, risen <= 0),
        ]


def _growth(before: _State, after: _State, key: str) -> int:
    """The growth of a statistic, on the device where it grew most."""
    return max(
        stats[key] - before.stats.get(device, {}).get(key, 0)
        for device, stats in after.stats.items()
    )


@functools.cache
def _devices_with_peaks() -> tuple[jax.Device, ...]:
    # Once per process: whether a device has the statistics never changes, and asking one that has
    # not costs time in every block. The maximum over some of the devices would mislead.
    import jax

    devices = tuple(jax.local_devices())
    return devices if all(_has_peak(device) for device in devices) else ()


def _has_peak(device: jax.Device) -> bool:
    import jax

    try:
        return {_IN_USE, _PEAK} <= (device.memory_stats() or {}).keys()
    except (jax.errors.JaxRuntimeError, NotImplementedError):
        return False


PYTHON_PEAK = Metric(
    name="7_memory/tracemalloc_peak_diff_mb",
    unit="MiB",
    better="lower",
    description="Peak of traced Python allocations during the block, less those at its start",
    collector="tracemalloc",
)
METRICS = (LIVE_ARRAYS, *_DEVICES.metrics, PYTHON_PEAK)

_TOP_SITES = 15
_TOP_SITES_HEADER = f"Python's top {_TOP_SITES} allocation sites by what is still allocated:"

_lock = threading.Lock()
_open: list[Tracemalloc] = []
_we_started = False


class Tracemalloc:
    """Peak of traced memory above the start, in MiB, and the top allocation sites as notes.

    The interpreter has one peak, and an inner block needs it reset. So every start and stop first
    credits the peak so far to all open blocks: each knows its own true peak, nested or not.

    Before Python 3.12.9 a thread that ends while tracing stops can crash the process
    (https://github.com/python/cpython/issues/128679); a repeat is then tried again.
    """

    def __init__(self) -> None:
        # once stopped, a heading and a line per site: MiB, number of allocations, place
        self.notes: list[str] = []
        self._before = 0
        self._peak = 0

    def start(self) -> None:
        """Starts tracing unless it runs already, and reads the traced memory."""
        global _we_started  # noqa: PLW0603  # tracing is process-wide, and so is who began it
        with _lock:
            if not tracemalloc.is_tracing():
                tracemalloc.start()
                _we_started = True
            self._before = self._peak = _credit_peak()
            _open.append(self)

    def stop(self) -> list[Reading]:
        """The peak since `start`; stops tracing with the last open block if we began it."""
        global _we_started  # noqa: PLW0603  # as in start
        with _lock:
            _credit_peak()
            _open.remove(self)
            self.notes = _top_sites()
            # What that allocated is no peak of the blocks that are still open.
            tracemalloc.reset_peak()
            if _we_started and not _open:
                tracemalloc.stop()
                _we_started = False
        return [Reading(PYTHON_PEAK.name, (self._peak - self._before) / 2**20, PYTHON_PEAK.unit)]

    def credit(self, peak: int) -> None:
        """Raises this block's peak to `peak` bytes if that is higher."""
        self._peak = max(self._peak, peak)


def _credit_peak() -> int:
    current, peak = tracemalloc.get_traced_memory()
    for window in _open:
        window.credit(peak)
    tracemalloc.reset_peak()
    return current


def _top_sites() -> list[str]:
    sites = tracemalloc.take_snapshot().statistics("lineno")[:_TOP_SITES]
    return [
        _TOP_SITES_HEADER,
        *(
            f"{site.size / 2**20:10.3f} MiB {site.count:8d} x "
            f"{site.traceback[0].filename}:{site.traceback[0].lineno}"
            for site in sites
        ),
    ]
