"""Orphaned workers: they end with the process that started them, and leave no record."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Final, NoReturn

EXIT_ABANDONED: Final = 1

_SET_PARENT_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of linux/prctl.h."""


def die_with_parent(parent: int) -> bool:
    """Has the kernel kill this process when the one that started it ends, however it ends.

    The signal is SIGKILL, for a process that is stopped sees no other. It is sent when the thread
    that started this process ends, which for an orchestrator is the one that measures.
    """
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # other kernels have no such call
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    return os.getppid() == parent


def leave() -> NoReturn:
    """Ends this process at once and without a word: nobody is left who could use a result."""
    os._exit(EXIT_ABANDONED)
