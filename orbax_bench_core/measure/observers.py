"""Observers of measured blocks: samples are streamed as each block ends, failures are logged."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from orbax_bench_core.measure.definition import Sample

T = TypeVar("T")
Callback = Callable[[Sequence[Sample]], None]

# Reentrant, so that a callback that measures something recurses instead of hanging.
_calling = threading.RLock()
_log = logging.getLogger(__name__)
_failed: set[str] = set()


class Slot(Generic[T]):
    """Holds a value while a context manager is open."""

    def __init__(self, what: str) -> None:
        self._value: T | None = None
        self._what = what
        self._lock = threading.Lock()

    def get(self) -> T | None:
        """The value now; None when the slot is empty."""
        return self._value

    @contextlib.contextmanager
    def holding(self, value: T) -> Iterator[None]:
        """Holds `value` until the block ends; a second one may not come meanwhile.

        Raises:
            RuntimeError: The slot is not empty, in this or another thread.
        """
        with self._lock:
            if self._value is not None:
                raise RuntimeError(
                    f"{self._what} is already active in this process, and it does not nest; "
                    f"leave the first `with {self._what}(...)` block before the second"
                )
            self._value = value
        try:
            yield
        finally:
            self._value = None


_callback: Slot[Callback] = Slot("observing")


@contextlib.contextmanager
def observing(callback: Callback) -> Iterator[None]:
    """Calls `callback` with the samples of every block that ends, in any `Metrics` and thread.

    What a worker writes from here survives a crash of the worker. Calls happen in the thread whose
    block ended, one at a time, outside every clock of that thread. No call runs once this context
    has ended. A callback that raises is logged, and the measured block is unharmed.

    Args:
        callback: Takes the samples of one block; must not measure anything itself.

    Yields:
        Nothing.

    Raises:
        RuntimeError: Another `observing` is active in this process.
    """
    try:
        with _callback.holding(callback):
            yield
    finally:
        with _calling:
            pass  # a call that began before the slot emptied has ended once this lock is ours


def notify(samples: Sequence[Sample]) -> None:
    """Hands the samples of a finished block to the observer, if there is one."""
    if _callback.get() is None:
        return
    with _calling:
        callback = _callback.get()
        if callback is not None:
            attempt("stream samples to the observer", lambda: callback(samples), None)


def attempt(what: str, call: Callable[[], T], otherwise: T, whose: str = "") -> T:
    """Calls `call`; an exception is logged and `otherwise` is returned.

    The first failure of each `what` in the process is a WARNING with its traceback, later ones are
    DEBUG: a collector that fails must not flood the log of a thousand blocks.

    Args:
        what: What follows "could not" in the log.
        call: What is tried.
        otherwise: What is returned if it raises.
        whose: Name that follows `what` in the log, in quotes; empty for none.
    """
    # Both are joined only if needed: every block comes here three times for each of its collectors.
    try:
        return call()
    except Exception:  # noqa: BLE001  # measuring is a guest in the process that it measures
        what = f"{what} {whose!r}" if whose else what
        level = logging.DEBUG if what in _failed else logging.WARNING
        _failed.add(what)
        _log.log(level, "could not %s; the measured code runs on", what, exc_info=True)
        return otherwise
