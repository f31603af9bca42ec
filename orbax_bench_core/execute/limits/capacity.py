"""How many bytes the probes may move here without filling the disk or the memory."""

from __future__ import annotations

import shutil
from pathlib import Path

from orbax_bench_core.config.errors import SuiteError

MIN_BYTES = 1 << 20
"""With less, a probe measures the start of its threads."""

_CGROUP = Path("/sys/fs/cgroup")


def fitting_bytes(requested: int, *, free_disk: int | None, free_memory: int) -> tuple[int, str]:
    """Returns how many of the bytes that are asked for can be moved, and what stands in the way.

    Memory holds the bytes up to six times: source, buffers, what TensorStore encodes and decodes,
    and the page cache. The disk holds them once at a time.

    Args:
        requested: Bytes that are asked for.
        free_disk: Free bytes on the storage; None where there is no such limit.
        free_memory: Bytes of memory that can be taken.

    Returns:
        Bytes, and a sentence for people that is empty when all of them can be moved.

    Raises:
        SuiteError: Not even `MIN_BYTES` can be moved, or fewer were asked for.
    """
    if requested < MIN_BYTES:
        raise SuiteError(
            f"{requested} bytes are too few to measure; use at least {_size(MIN_BYTES)}"
        )
    allowed = {f"an eighth of the {_size(free_memory)} of free memory": free_memory // 8}
    if free_disk is not None:
        allowed[f"half of the {_size(free_disk)} of free disk"] = free_disk // 2
    cause = min(allowed, key=lambda name: allowed[name])
    if allowed[cause] < MIN_BYTES:
        raise SuiteError(
            f"no space: only {cause} may be used, and at least {_size(MIN_BYTES)} is needed; "
            "make room"
        )
    if allowed[cause] >= requested:
        return requested, ""
    return allowed[cause], f"{_size(requested)} was asked for, but only {cause} may be used"


def free_disk_bytes(directory: Path) -> int:
    """Returns the free bytes of the file system that holds a local directory."""
    return shutil.disk_usage(directory).free


def free_memory_bytes() -> int:
    """Returns the bytes of memory that this process can take, in a container the container's."""
    import psutil

    available = int(psutil.virtual_memory().available)
    group = cgroup_free_bytes(_CGROUP)
    return available if group is None else min(available, group)


def cgroup_free_bytes(root: Path) -> int | None:
    """Returns the bytes that a control group (version 2) has left, or None if it has no limit.

    The page cache counts as free: the kernel drops it when memory is wanted.

    Args:
        root: The group's folder, which a container sees as the root of the hierarchy.
    """
    try:
        limit = (root / "memory.max").read_text().strip()
        used = int((root / "memory.current").read_text())
        statistics = dict(line.split() for line in (root / "memory.stat").read_text().splitlines())
    except OSError:
        return None
    if limit == "max":
        return None
    return max(0, int(limit) - used + int(statistics.get("file", 0)))


def _size(num_bytes: int) -> str:
    return f"{num_bytes / 2**20:.0f} MiB"
