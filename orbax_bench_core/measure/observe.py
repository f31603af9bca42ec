"""Streams samples out of the process as soon as each block ends."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence

from orbax_bench_core.measure import guard
from orbax_bench_core.measure.sample import Sample
from orbax_bench_core.measure.slot import Slot

Callback = Callable[[Sequence[Sample]], None]

_callback: Slot[Callback] = Slot("observing")
# Reentrant, so that a callback that measures something recurses instead of hanging.
_calling = threading.RLock()


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
            guard.attempt("stream samples to the observer", lambda: callback(samples), None)
