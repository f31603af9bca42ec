"""Control groups for memory, and what they or the machine leave free for this process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
VMSTAT = Path("/proc/vmstat")
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
    kills: str  # has a line `oom_kill N`, the processes killed because the group was at its limit
    stat: str = "memory.stat"


_UNIFIED: Final = GroupFiles(
    "memory.max", "memory.current", "memory.peak", ("active_file", "inactive_file"), "memory.events"
)
_DIVIDED: Final = GroupFiles(
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "memory.max_usage_in_bytes",
    ("total_active_file", "total_inactive_file"),
    "memory.oom_control",
)


def free_memory_bytes() -> int:
    """Returns the bytes of memory that this process can take, in a container the container's."""
    import psutil

    left = (_left_by_group(folder, files) for folder, files in memory_groups())
    known = [free for free in left if free is not None]
    return min([int(psutil.virtual_memory().available), *known])


class MemoryKills(NamedTuple):
    """Processes that the kernel has killed since the machine started, because memory ran out."""

    in_group: int | None  # at the limit of the nearest control group that counts them
    on_machine: int | None  # anywhere, also in containers of others
    limit_bytes: int | None  # of that group; None for no limit

    @classmethod
    def read(cls) -> "MemoryKills":
        """Returns the counts now; a count that the kernel does not show is None."""
        machine = _count(VMSTAT, "oom_kill")
        for folder, files in memory_groups():
            found = _count(folder / files.kills, "oom_kill")
            if found is not None:
                return cls(found, machine, _limit(folder, files))
        return cls(None, machine, None)

    def cause_since(self, before: "MemoryKills") -> str:
        """Returns why a process was killed by SIGKILL after `before` was read, as far as known."""
        if _rose(before.in_group, self.in_group):
            limit = "" if self.limit_bytes is None else f", at {self.limit_bytes / 2**20:,.0f} MiB"
            return f"memory ran out: the kernel killed it at the limit of its container{limit}"
        if self.on_machine is None or before.on_machine is None:
            return "the kernel may have killed it because memory ran out"
        if _rose(before.on_machine, self.on_machine):
            return "memory of the machine ran out meanwhile, and the kernel killed a process for it"
        return "memory did not run out meanwhile, so it was another process that killed it"


def _rose(before: int | None, now: int | None) -> bool:
    return before is not None and now is not None and now > before


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
    limit = _limit(folder, files)
    if limit is None:
        return None
    try:
        used = int((folder / files.used).read_text())
        counts = [_count(folder / files.stat, name) or 0 for name in files.cache]
    except OSError:
        return None
    return max(0, limit - used + sum(counts))


def _limit(folder: Path, files: GroupFiles) -> int | None:
    """Returns the limit of a group in bytes, or None if it has none."""
    try:
        limit = (folder / files.limit).read_text().strip()
    except OSError:
        return None
    return None if limit == "max" or int(limit) >= _NO_LIMIT else int(limit)


def _count(file: Path, name: str) -> int | None:
    """Returns the number on the line of that name, or None if there is none."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    return next((int(value) for key, value in map(str.split, lines) if key == name), None)
