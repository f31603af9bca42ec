"""The kernel's own mark of this process's largest resident set, begun anew at will."""

from __future__ import annotations

import functools
import os

from orbax_bench_core.measure.collectors import kernel_file

_STATUS = "/proc/self/status"
_MARK = b"VmHWM:"
# "5" resets VmHWM: Documentation/filesystems/proc.rst of Linux, section 1.1.
_RESET = b"5"


def is_available() -> bool:
    """Whether the kernel keeps a mark that this process may reset: Linux, without a strict sandbox.

    The first call in a process resets it.
    """
    return _switch(os.getpid()) is not None


def reset() -> None:
    """Lowers the mark to the resident set size of this moment.

    `ru_maxrss` of the process follows the mark, so from here on it too says the peak since then.

    Raises:
        OSError: `is_available` is false, or the kernel refuses.
    """
    switch = _switch(os.getpid())
    if switch is None:
        raise OSError("this process cannot reset VmHWM; ask is_available() first")
    os.pwrite(switch, _RESET, 0)


def read() -> int:
    """The largest resident set since `reset`, in bytes.

    Raises:
        OSError: The kernel keeps no mark.
    """
    status = kernel_file.reader(_STATUS)
    found = b"" if status is None else status(0).partition(_MARK)[2]
    if not found:
        raise OSError(f"{_STATUS} has no {_MARK.decode()} line; ask is_available() first")
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
        read()
    except OSError:
        os.close(switch)
        return None
    return switch
