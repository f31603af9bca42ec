"""What ran, and on what: the facts that make two results comparable, or not."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import socket
import subprocess
from pathlib import Path
from typing import Any

UNKNOWN = "unknown"

PACKAGES = ("orbax-bench", "orbax-checkpoint", "jax", "jaxlib", "tensorstore", "numpy")
_ENVIRONMENT = ("XLA_FLAGS", "JAX_PLATFORMS", "LIBTPU_INIT_ARGS", "GLIBC_TUNABLES")


@functools.cache
def host_provenance() -> dict[str, Any]:
    """Returns versions, code revision, host and settings; what cannot be found is `unknown`."""
    import psutil

    return {
        "versions": {name: package_version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "git": _git_revision(Path(__file__).resolve().parent),
        "image": os.environ.get("ORBAX_BENCH_IMAGE", UNKNOWN),
        "host": {
            "name": socket.gethostname(),
            "kernel": platform.platform(),
            "cpu": _cpu_model(),
            "cpu_count": os.cpu_count() or UNKNOWN,
            "memory_bytes": psutil.virtual_memory().total,
        },
        "environment": {name: os.environ.get(name, "") for name in _ENVIRONMENT},
    }


def device_provenance() -> dict[str, Any]:
    """Returns what JAX runs on: platform, kind and count. Starts JAX's backend."""
    import jax

    devices = jax.devices()
    return {
        "platform": devices[0].platform,
        "kind": devices[0].device_kind,
        "count": len(devices),
        "local_count": jax.local_device_count(),
    }


def package_version(name: str) -> str:
    """Returns the installed version of a distribution, or `unknown`."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return UNKNOWN


def _git_revision(directory: Path) -> dict[str, Any]:
    """Returns the commit of the code that runs, never that of the current folder."""
    commit = _git(directory, "rev-parse", "HEAD")
    if commit is None:
        return {"commit": UNKNOWN, "dirty": UNKNOWN}
    status = _git(directory, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": bool(status) if status is not None else UNKNOWN}


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        process = subprocess.run(
            ["git", "-C", str(directory), *arguments],  # noqa: S607 - wherever git is installed
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout.strip() if process.returncode == 0 else None


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or UNKNOWN
