"""Control groups for memory, and what they or the machine leave free for this process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
_NO_LIMIT: Final = 1 << 60
"""Version 1 has a number near 2**63 where there is no limit."""


class GroupFiles(NamedTuple):
    """Files of one version of control groups, and the names of droppable pages in them.

    What lies in a tmpfs counts as page cache as well, and cannot.
    """

    limit: str
    used: str
    peak: str
    cache: tuple[str, str]
    stat: str = "memory.stat"


_UNIFIED: Final = GroupFiles(
    "memory.max", "memory.current", "memory.peak", ("active_file", "inactive_file")
)
_DIVIDED: Final = GroupFiles(
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "memory.max_usage_in_bytes",
    ("total_active_file", "total_inactive_file"),
)


def free_memory_bytes() -> int:
    """Returns the bytes of memory that this process can take, in a container the container's."""
    import psutil

    left = (_left_by_group(folder, files) for folder, files in memory_groups())
    known = [free for free in left if free is not None]
    return min([int(psutil.virtual_memory().available), *known])


def memory_groups() -> Iterator[tuple[Path, GroupFiles]]:
    """Yields the control groups for memory that this process is in, its own before those around."""
    # A container sees its own group at the root, whatever it is called on the host.
    try:
        lines = MEMBERSHIP.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        own = Path(group.lstrip("/"))
        folders = (own, *own.parents) if own.parts else (own,)
        if not controllers:
            yield from ((ROOT / folder, _UNIFIED) for folder in folders)
        elif "memory" in controllers.split(","):
            yield from ((ROOT / "memory" / folder, _DIVIDED) for folder in folders)


def group_file(name: Literal["peak", "stat"]) -> str | None:
    """Returns a file of the nearest control group for memory that has it."""
    found = (folder / getattr(files, name) for folder, files in memory_groups())
    return next((str(file) for file in found if file.exists()), None)


def _left_by_group(folder: Path, files: GroupFiles) -> int | None:
    """Returns the bytes that one group has left, or None if it has no limit."""
    # The page cache counts as free: the kernel drops it when memory is wanted.
    try:
        limit = (folder / files.limit).read_text().strip()
        if limit == "max" or int(limit) >= _NO_LIMIT:
            return None
        used = int((folder / files.used).read_text())
        lines = (folder / files.stat).read_text().splitlines()
    except OSError:
        return None
    counts = {name: int(count) for name, count in map(str.split, lines)}
    return max(0, int(limit) - used + sum(counts.get(name, 0) for name in files.cache))
