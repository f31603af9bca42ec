"""Simulated CPU devices, set up without the user's XLA flags."""

from __future__ import annotations

import os

MAX_SIMULATED_DEVICES = 64
"""A mesh that needs more is skipped on a CPU, unless somebody sets the number of devices: the
suites that Orbax publishes list meshes of up to 512 devices and expect only some to fit."""

_DEVICE_COUNT_FLAG = "xla_force_host_platform_device_count"


def simulate_devices(count: int) -> bool:
    """Asks JAX for `count` CPU devices; call it before the first device is used."""
    import jax

    if _DEVICE_COUNT_FLAG in os.environ.get("XLA_FLAGS", "") or "JAX_NUM_CPU_DEVICES" in os.environ:
        return False
    count = min(count, MAX_SIMULATED_DEVICES)
    if "jax_num_cpu_devices" in jax.config.values:
        jax.config.update("jax_num_cpu_devices", count)
    else:  # JAX 0.5.0
        flags = f"{os.environ.get('XLA_FLAGS', '')} --{_DEVICE_COUNT_FLAG}={count}"
        os.environ["XLA_FLAGS"] = flags.strip()
    return True
