"""Collector `device_memory`: arrays that are alive, and the peak of device memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from orbax_bench_core.measure.collectors.base import Reading
from orbax_bench_core.measure.definition import Metric

if TYPE_CHECKING:
    import jax

LIVE_ARRAYS = Metric(
    name="7_memory/jax_live_arrays_count_delta",
    unit="count",
    better="none",
    description="JAX arrays alive at the end less those alive at the start",
    collector="device_memory",
)
HBM_PEAK = Metric(
    name="7_memory/device_hbm_peak_diff_gb",
    unit="GiB",
    better="lower",
    description=(
        "Rise of the peak of bytes in use, on the local device where it rose most; 0 when the "
        "block stayed below an earlier peak of the process; absent on backends without it"
    ),
    collector="device_memory",
)
METRICS = (LIVE_ARRAYS, HBM_PEAK)

_PEAK = "peak_bytes_in_use"


class DeviceMemory:
    """Live arrays and device memory peaks, end less start.

    It never initializes a JAX backend: `jax.distributed.initialize` must be able to come later.
    """

    def __init__(self) -> None:
        import jax
        from jax._src import xla_bridge

        self._live_arrays: Callable[[], Sequence[object]] = jax.live_arrays
        self._has_backend = xla_bridge.backends_are_initialized
        self._arrays = 0
        self._peaks: Mapping[jax.Device, int] = {}

    def start(self) -> None:
        """Reads the live arrays and the peaks; nothing when JAX has no backend yet."""
        if self._has_backend():
            self._arrays = len(self._live_arrays())
            self._peaks = _peaks()

    def stop(self) -> list[Reading]:
        """The changes since `start`."""
        if not self._has_backend():
            return []
        peaks = _peaks()
        arrays = len(self._live_arrays()) - self._arrays
        found = [Reading(LIVE_ARRAYS.name, float(arrays), LIVE_ARRAYS.unit)]
        if peaks:
            rise = max(peak - self._peaks.get(device, 0) for device, peak in peaks.items())
            found.append(Reading(HBM_PEAK.name, rise / 2**30, HBM_PEAK.unit))
        return found


def _peaks() -> dict[jax.Device, int]:
    return {device: (device.memory_stats() or {})[_PEAK] for device in _devices_with_peaks()}


@functools.cache
def _devices_with_peaks() -> tuple[jax.Device, ...]:
    # Once per process: whether a device has the statistic never changes, and asking one that has
    # not costs time in every block. The maximum over some of the devices would mislead.
    import jax

    devices = tuple(jax.local_devices())
    return devices if all(_has_peak(device) for device in devices) else ()


def _has_peak(device: jax.Device) -> bool:
    import jax

    try:
        return _PEAK in (device.memory_stats() or {})
    except (jax.errors.JaxRuntimeError, NotImplementedError):
        return False
