"""Identity of a process, by which others on its machine know whether it is gone."""

from __future__ import annotations

import contextlib
import functools
import os
import socket
from pathlib import Path


def machine_id() -> str:
    """Returns what all containers of this machine have in common, and no other machine has."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()


@functools.cache
def this_machine() -> str:
    """Returns what tells this boot and process namespace from all others."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


def started(pid: int) -> str:
    """Returns when a process started, in the kernel's ticks; empty when that cannot be known."""
    try:
        # The name of a process, in parentheses, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # A process that has ended, and whose parent has not asked for it, is gone.
    return "" if fields[0] in "ZX" else fields[19]


def is_gone(pid: int, since: str) -> bool:
    """Whether a process of this machine, which started at `since`, is not there any more."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return since != started(pid)
