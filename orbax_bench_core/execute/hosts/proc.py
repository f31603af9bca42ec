"""Signs of a process in Linux's /proc; where there is none, they are unknown."""

from __future__ import annotations

import platform
from pathlib import Path

from orbax_bench_core.execute.liveness import Signs

_UTIME, _STIME = 11, 12
"""Places in `/proc/<pid>/stat` after the state, as `man 5 proc` numbers them from there."""


def read_signs(pid: int, *, ended: bool, exit_code: int | None, root: str = "/proc") -> Signs:
    """Reads the signs of a process."""
    state, ticks = "", None
    if exit_code is None:
        # The name of the program comes before the state, and may hold anything, brackets too.
        fields = _read(Path(root, str(pid), "stat")).rpartition(")")[2].split()
        if len(fields) > _STIME:
            state, ticks = fields[0], int(fields[_UTIME]) + int(fields[_STIME])
    return Signs(
        pid=pid,
        hostname=platform.node(),
        state=state,
        ticks=ticks,
        wchan=_wchan(Path(root, str(pid))) if state in ("S", "D") else "",
        ended=ended,
        exit_code=exit_code,
    )


def kernel_stacks(pid: int, root: str = "/proc") -> str:
    """Returns where each thread of a process stands in the kernel, as far as this user may see.

    A stopped process cannot print its own stacks.
    """
    threads = sorted(Path(root, str(pid), "task").glob("*"), key=lambda path: int(path.name))
    return "\n".join(filter(None, map(_thread, threads)))


def sleepers(pid: int, root: str = "/proc") -> str:
    """Returns the threads of a process in uninterruptible sleep, and where each sleeps."""
    threads = sorted(Path(root, str(pid), "task").glob("*"), key=lambda path: int(path.name))
    return "\n".join(line for line in map(_thread, threads) if ": state D" in line)


def _thread(folder: Path) -> str:
    name, _, rest = _read(folder / "stat").partition("(")[2].rpartition(")")
    if not rest:
        return ""  # it has ended since
    where = _wchan(folder) or "unknown"
    frames = [f"    {line}" for line in _read(folder / "stack").splitlines()]
    head = f"thread {folder.name} ({name}): state {rest.split()[0]}, in {where}"
    return "\n".join([head, *frames])


def _wchan(folder: Path) -> str:
    where = _read(folder / "wchan").strip()
    return "" if where == "0" else where


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has ended, or is another user's, or this is no Linux
        return ""
