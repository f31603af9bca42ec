"""Collector `device_memory`: live arrays, bytes in use and peaks of the local devices."""

from __future__ import annotations

import functools
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
METRICS = (LIVE_ARRAYS, *_DEVICES.metrics)

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
