"""Free memory of this process: the machine's, or what its control groups leave, if that is less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

_ROOT: Final = Path("/sys/fs/cgroup")
_MEMBERSHIP: Final = Path("/proc/self/cgroup")
_NO_LIMIT: Final = 1 << 60
"""Version 1 has a number near 2**63 where there is no limit."""


class _Files(NamedTuple):
    """Files of one version of control groups, and the names of droppable pages in them.

    What lies in a tmpfs counts as page cache as well, and cannot.
    """

    limit: str
    used: str
    cache: tuple[str, str]


_UNIFIED: Final = _Files("memory.max", "memory.current", ("active_file", "inactive_file"))
_DIVIDED: Final = _Files(
    "memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file")
)


def free_memory_bytes() -> int:
    """Returns the bytes of memory that this process can take, in a container the container's."""
    import psutil

    return min([int(psutil.virtual_memory().available), *_left_by_groups(_MEMBERSHIP, _ROOT)])


def _left_by_groups(membership: Path, root: Path) -> Iterator[int]:
    """Yields what each group leaves that this process is in, of those that have a limit.

    A container sees its own group at the root, whatever it is called on the host.
    """
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if not controllers:
            place, files = root, _UNIFIED
        elif "memory" in controllers.split(","):
            place, files = root / "memory", _DIVIDED
        else:
            continue
        own = Path(group.lstrip("/"))
        for folder in (own, *own.parents) if own.parts else (own,):
            left = _left_by_group(place / folder, files)
            if left is not None:
                yield left


def _left_by_group(folder: Path, files: _Files) -> int | None:
    """Returns the bytes that one group has left, or None if it has no limit.

    The page cache counts as free: the kernel drops it when memory is wanted.
    """
    try:
        limit = (folder / files.limit).read_text().strip()
        if limit == "max" or int(limit) >= _NO_LIMIT:
            return None
        used = int((folder / files.used).read_text())
        counts = _counts((folder / "memory.stat").read_text())
    except OSError:
        return None
    return max(0, int(limit) - used + sum(counts.get(name, 0) for name in files.cache))


def _counts(text: str) -> Mapping[str, int]:
    return {name: int(count) for name, count in map(str.split, text.splitlines())}
