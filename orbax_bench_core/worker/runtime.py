"""Runtime of a worker: its simulated devices, and when garbage is collected."""

import contextlib
import gc
import itertools
import os
import sys
from collections.abc import Iterator
from typing import Final

MAX_SIMULATED_DEVICES = 64
"""A mesh that needs more is skipped on a CPU, unless somebody sets the number of devices: the
suites that Orbax publishes list meshes of up to 512 devices and expect only some to fit."""

_DEVICE_COUNT_FLAG = "xla_force_host_platform_device_count"


def simulate_devices(count: int) -> bool:
    """Asks JAX for `count` CPU devices; call it before the first device is used.

    Returns:
        Whether it did; false where variables of the environment give a number already.
    """
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


_repeats: Final = itertools.count()


@contextlib.contextmanager
def importing(module: str) -> Iterator[None]:
    """Freezes all objects once a module is imported; does nothing where it is imported already."""
    # Imports make hundreds of thousands of objects that stay. To search them for garbage takes a
    # quarter of the time of the imports, and 0.1 s before every repeat.
    if module in sys.modules:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def collect_garbage() -> None:
    """Collects garbage before a repeat; what the first one has imported is not searched again."""
    gc.collect()
    if next(_repeats) == 1:
        gc.freeze()


def collect_for_the_last_time() -> None:
    """Collects garbage, and freezes the rest, which the interpreter would search as it ends."""
    gc.collect()
    gc.freeze()
