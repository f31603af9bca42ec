"""Interrupts that wait, for code that would turn them into something else."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Final

_INTERRUPTS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Has interrupts wait until the end of the block, which is short.

    Pydantic builds a validator in code that makes an error of its own of whatever is raised inside,
    so that a command which is told to end would go on, or end with a traceback.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = {
        number: handler for number in _INTERRUPTS if callable(handler := signal.getsignal(number))
    }
    for number in before:
        signal.signal(number, lambda number, _frame: heard.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if heard:
            os.kill(os.getpid(), heard[0])
