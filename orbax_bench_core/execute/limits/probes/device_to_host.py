"""Copying arrays from the devices to host memory."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from orbax_bench_core.execute.limits.clock import repeated, timed
from orbax_bench_core.execute.limits.probes.host_to_device import on_devices
from orbax_bench_core.execute.limits.workload import Array, Workload


def device_to_host(workload: Workload) -> list[float]:
    """Times the transfer of all pieces from this process's devices, all under way at once.

    A CPU device shares its memory with the host, so this says something of accelerators only.

    Returns:
        Seconds of each repeat.
    """

    def once() -> float:
        # An array keeps its host copy, so each repeat needs new ones.
        arrays = on_devices(workload)
        return timed([lambda: _fetch(arrays)])

    return repeated(workload.repeats, once)


def _fetch(arrays: Sequence[jax.Array]) -> list[Array]:
    for array in arrays:
        array.copy_to_host_async()
    return [np.asarray(array) for array in arrays]
