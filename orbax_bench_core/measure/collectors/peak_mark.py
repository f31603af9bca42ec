"""The kernel's mark of the largest resident set, `VmHWM`, and its reset."""

from __future__ import annotations

import functools
import os

from orbax_bench_core.measure.collectors import base

_STATUS = "/proc/self/status"
_MARK = b"VmHWM:"

# "5" resets VmHWM: Documentation/filesystems/proc.rst of Linux, section 1.1.
_RESET = b"5"


def has_mark() -> bool:
    """Whether the kernel keeps a mark that this process may reset: Linux without strict sandbox."""
    # The first call in a process resets it.
    return _switch(os.getpid()) is not None


def reset_mark() -> None:
    """Lowers the mark to the resident set size of this moment.

    `ru_maxrss` of the process follows the mark, so from here on it too says the peak since then.

    Raises:
        OSError: `has_mark` is false, or the kernel refuses.
    """
    switch = _switch(os.getpid())
    if switch is None:
        raise OSError("this process cannot reset VmHWM; ask has_mark() first")
    os.pwrite(switch, _RESET, 0)


def read_mark() -> int:
    """Returns the largest resident set since `reset_mark`, in bytes.

    Raises:
        OSError: The kernel keeps no mark; `has_mark` says so beforehand.
    """
    status = base.reader(_STATUS)
    found = b"" if status is None else status(0).partition(_MARK)[2]
    if not found:
        raise OSError(f"{_STATUS} has no {_MARK.decode()} line; ask has_mark() first")
    return int(found.split(None, 1)[0]) * 1024


@functools.cache
def _switch(_pid: int) -> int | None:
    # By pid, as every file of /proc/self that stays open.
    try:
        switch = os.open("/proc/self/clear_refs", os.O_WRONLY)
    except OSError:
        return None
    try:
        os.pwrite(switch, _RESET, 0)
        read_mark()
    except OSError:
        os.close(switch)
        return None
    return switch
