"""Signs of a worker, as the kernel shows them in `/proc`."""

import dataclasses
import platform
from pathlib import Path

_GONE = frozenset("ZXx")
_STOPPED = frozenset("Tt")

_FREEZER = frozenset({"do_freezer_trap", "get_signal", "__refrigerator"})
"""Kernel functions in which the freezer of a control group holds a process, whose state does not
tell of it. Nothing else sleeps there; a kernel with another name leaves the worker `unknown`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Signs:
    """Signs of a worker at one moment; what is not known keeps its default."""

    pid: int | None = None  # its process id
    hostname: str = ""  # the machine on which it runs
    state: str = ""  # the letter of its state, as in `/proc/<pid>/stat`: R, S, D, T, t or Z
    ticks: int | None = None  # clock ticks of CPU that all of its threads have used
    wchan: str = ""  # the function of the kernel in which its main thread sleeps
    ended: bool = False  # whether the pipe of its events is closed
    exit_code: int | None = None  # its exit code, negative for a signal; None while it runs

    @property
    def gone(self) -> bool:
        """Whether the process has ended."""
        return self.ended or self.exit_code is not None or self.state in _GONE

    @property
    def stopped(self) -> bool:
        """Whether it is stopped by a signal, by a debugger, or by the freezer of its container."""
        return self.state in _STOPPED or (self.state in ("S", "D") and self.wchan in _FREEZER)


_UTIME, _STIME = 11, 12
"""Places in `/proc/<pid>/stat` after the state, as `man 5 proc` numbers them from there."""


def read_signs(pid: int, *, ended: bool, exit_code: int | None, root: str = "/proc") -> Signs:
    """Reads the signs of a process.

    Args:
        pid: Its process id.
        ended: Whether the pipe of its events is closed.
        exit_code: Its exit code; None while it runs.
        root: Where the kernel shows processes.
    """
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
    """Returns where each thread of a process stands in the kernel, as far as this user may see."""
    # A stopped process cannot print its own stacks.
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
