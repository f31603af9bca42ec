"""Provenance of a process: versions, code, host, devices, storage.

Unpaired runs are comparable only if machine and storage agree.
"""

import functools
import importlib.metadata
import os
import platform
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbax_bench_core.provenance.code import UNKNOWN, ask_git

PACKAGES = (
    "orbax-bench",
    "orbax-checkpoint",
    "jax",
    "jaxlib",
    "tensorstore",
    "numpy",
    "libtpu",
    "torch",
)
_ENVIRONMENT = (
    "GLIBC_TUNABLES",
    "JAX_NUM_CPU_DEVICES",
    "JAX_PLATFORMS",
    "LIBTPU_INIT_ARGS",
    "TENSORSTORE_GCS_HTTP_URL",
    "TPU_ACCELERATOR_TYPE",
    "XLA_FLAGS",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
)
IMAGE = "ORBAX_BENCH_IMAGE"
"""Variable of the image that a process runs in, which only the starter of it knows by digest."""
_BY_DIGEST = re.compile(r"[^\s@,]+@sha256:[0-9a-f]{64}")
NODE = "ORBAX_BENCH_NODE"
"""Variable of the machine below a container, which has a name of its own."""
REJOINED = "ORBAX_BENCH_REJOINED"
"""Variable of how often the agent of a host has come back during a run."""

_TOLD = {
    "node": NODE,
    "node_pool": "ORBAX_BENCH_NODE_POOL",
    "restarts": "ORBAX_BENCH_RESTARTS",
    "rejoined": REJOINED,
}
"""Variables of a launcher: the machine below a pod, its pool, and how often all pods were started
again. What was measured before a restart may come from other machines."""
_NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")


@functools.cache
def host_provenance() -> dict[str, Any]:
    """Returns versions, code revision, host and settings; what cannot be found is `unknown`."""
    import psutil

    return {
        "versions": {name: package_version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "driver": _first_line(_NVIDIA_DRIVER),
        "git": _git_revision(Path(__file__).resolve()),
        "image": image_that_runs(),
        "base_image": os.environ.get("ORBAX_BENCH_BASE_DIGEST", UNKNOWN),
        "host": {
            "name": socket.gethostname(),
            "kernel": platform.platform(),
            "cpu": _cpu_model(),
            "cpu_count": os.cpu_count() or UNKNOWN,
            "memory_bytes": psutil.virtual_memory().total,
            # What only a launcher knows of this host; nothing where none has said it.
            **{key: os.environ[name] for key, name in _TOLD.items() if os.environ.get(name)},
        },
        "environment": {name: os.environ.get(name, "") for name in _ENVIRONMENT},
    }


def image_that_runs() -> str:
    """Returns the image that this process runs in, by its digest; `unknown` where none is told.

    A tag says what an image was called when it was built or pulled, on whatever machine.
    """
    told = os.environ.get(IMAGE, "")
    return told if _BY_DIGEST.fullmatch(told) else UNKNOWN


@functools.cache
def worker_id() -> str:
    """Returns the id of this process, `<host>:<pid>:<start>`, unique on all machines and for ever.

    A pid alone is given again to others; when the process started tells them apart.
    """
    import psutil

    started = psutil.Process().create_time()
    return f"{socket.gethostname()}:{os.getpid()}:{started:.2f}"


def device_provenance() -> dict[str, Any]:
    """Returns JAX's platform, kind, count and topology of devices. Starts JAX's backend."""
    import jax

    devices = jax.devices()
    coordinates = [getattr(device, "coords", None) for device in devices]
    slices = {getattr(device, "slice_index", 0) for device in devices}
    known = [tuple(place) for place in coordinates if place is not None]
    return {
        "platform": devices[0].platform,
        "kind": devices[0].device_kind,
        "count": len(devices),
        "local_count": jax.local_device_count(),
        "processes": jax.process_count(),
        "slices": len(slices),
        "topology": [max(axis) + 1 for axis in zip(*known, strict=True)] if known else UNKNOWN,
        "platform_version": devices[0].client.platform_version.strip(),
    }


def storage_provenance(path: str) -> dict[str, str]:
    """Returns the kind of storage that holds `path`, local or a URI, and where it is mounted."""
    scheme, separator, rest = path.partition("://")
    if separator:
        return {"type": scheme, "mount": f"{scheme}://{rest.partition('/')[0]}"}

    return dict(_local_storage(Path(path).absolute()))


@functools.cache  # nobody mounts anything below a run while it is measured, and asking takes 0.5 ms
def _local_storage(place: Path) -> dict[str, str]:
    import psutil

    mounts = [
        partition
        for partition in psutil.disk_partitions(all=True)
        if place.is_relative_to(partition.mountpoint)
    ]
    if not mounts:
        return {"type": UNKNOWN, "mount": UNKNOWN}
    # The last mount at the longest path is the one that is seen.
    nearest = max(enumerate(mounts), key=lambda mount: (len(mount[1].mountpoint), mount[0]))[1]
    return {"type": nearest.fstype or UNKNOWN, "mount": nearest.mountpoint}


@functools.cache
def package_version(name: str) -> str:
    """Returns the version of a distribution as installed when first asked, or `unknown`."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return UNKNOWN


def _git_revision(file: Path) -> dict[str, Any]:
    """Returns the commit of the code in `file`, never that of a repository that lies around it."""
    directory = file.parent
    tracked = ask_git(directory, "ls-files", "--error-unmatch", file.name)
    commit = ask_git(directory, "rev-parse", "HEAD")
    if not (tracked.ok and commit.ok):
        # An image has no repository, and says itself what it was built from.
        return {"commit": os.environ.get("ORBAX_BENCH_REVISION", UNKNOWN), "dirty": UNKNOWN}
    status = ask_git(directory, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit.text, "dirty": bool(status.text) if status.ok else UNKNOWN}


def _first_line(path: Path) -> str:
    try:
        return path.read_text().splitlines()[0].strip()
    except (OSError, IndexError):
        return UNKNOWN


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or UNKNOWN


def surroundings(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Returns the machine and the storage of a record; `unknown` where it does not say."""
    return {
        "CPU": _word(provenance, "host", "cpu"),
        "number of CPUs": _word(provenance, "host", "cpu_count"),
        "device": _word(provenance, "devices", "kind"),
        "storage": _word(provenance, "storage", "type"),
    }


def other_surroundings(provenance: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Returns in what the surroundings of two records are known to differ.

    Args:
        provenance: What ran, and on what, of one record.
        other: The same of another one.

    Returns:
        A line for each difference; what is unknown on either side is none.
    """
    these, those = surroundings(provenance), surroundings(other)
    return [
        f"{name}: {value}, was {those[name]}"
        for name, value in these.items()
        if value != those[name] and UNKNOWN not in (value, those[name])
    ]


def _word(provenance: Mapping[str, Any], *path: str) -> str:
    found: Any = provenance
    for key in path:
        found = found.get(key, UNKNOWN) if isinstance(found, Mapping) else UNKNOWN
    return str(found)
