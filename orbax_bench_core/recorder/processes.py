"""This process among others: its host, and whether it is the job or a helper of one."""

import os
import socket
import sys
from typing import Any


def may_ask_jax(has_saved: bool) -> bool:
    """Whether JAX tells the index of this process without starting a backend for that.

    A backend that a data loader starts would take the accelerator from the job.
    """
    bridge = sys.modules.get("jax._src.xla_bridge")
    is_started = getattr(bridge, "backends_are_initialized", None)
    return has_saved if is_started is None else bool(is_started())


def is_helper(directory: str) -> bool:
    """Whether this process was started by `multiprocessing`, or by one that records here itself."""
    module = sys.modules.get("multiprocessing.process")
    if module is not None and module.parent_process() is not None:
        return True
    names = (
        [] if "://" in directory else [name for *_, files in os.walk(directory) for name in files]
    )
    pid = os.getppid() if names else 0
    while pid > 1:
        if any(name.endswith(f"{name_of(pid)}.jsonl") for name in names):
            return True
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False


def name_of(pid: int) -> str:
    """Returns the end of the names of the files of a process of this machine."""
    return f"-{socket.gethostname()}-{pid}"


def described(jax: Any) -> dict[str, Any]:
    """Returns the keys of the first line of a recording that describe its process."""
    return {
        "host": int(jax.process_index()),
        "hosts": int(jax.process_count()),
        "pid": os.getpid(),
        "node": socket.gethostname(),
        "python": sys.version.split()[0],
        "jax": jax.__version__,
        "orbax": getattr(sys.modules.get("orbax.checkpoint"), "__version__", ""),
        "devices": jax.device_count(),
        "device_kind": jax.local_devices()[0].device_kind,
    }


def device_bytes(jax: Any) -> int | None:
    """Returns the bytes in use on the devices of this process; None if they do not say."""
    found = [device.memory_stats() for device in jax.local_devices()]
    return sum(int(stats.get("bytes_in_use", 0)) for stats in found) if all(found) else None
