"""Copying arrays from host memory to the devices."""

from __future__ import annotations

from collections.abc import Sequence

import jax

from orbax_bench_core.execute.limits.clock import repeated, timed
from orbax_bench_core.execute.limits.workload import Workload


def host_to_device(workload: Workload) -> list[float]:
    """Times the transfer of all pieces to this process's devices, in turn, until they are there.

    A CPU device takes host memory as it is, so this says something of accelerators only.

    Returns:
        Seconds of each repeat.
    """
    return repeated(workload.repeats, lambda: timed([lambda: on_devices(workload)]))


def on_devices(workload: Workload) -> Sequence[jax.Array]:
    """Returns the pieces as ready arrays, spread over this process's devices."""
    devices = jax.local_devices()
    arrays = [
        jax.device_put(piece, devices[index % len(devices)])
        for index, piece in enumerate(workload.pieces)
    ]
    jax.block_until_ready(arrays)
    return arrays
