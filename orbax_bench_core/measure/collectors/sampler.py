"""Sampler: a function that one thread calls at intervals, for all who want it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from orbax_bench_core.measure import observers

INTERVAL_S = 0.01


class Sampler:
    """Calls a function at intervals, in one thread for all who want it.

    Between wishes the thread waits and costs nothing: starting one per block would cost more than
    most of the blocks' collectors together.
    """

    def __init__(
        self, what: str, sample: Callable[[], None], *, interval_s: float = INTERVAL_S
    ) -> None:
        """Prepares to call `sample`, `interval_s` seconds after it returned; starts nothing."""
        # It must be quick, because it holds Python's lock. `what` follows "could not" in the log.
        self._what = what
        self._sample = sample
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._wishes = 0
        self._thread: threading.Thread | None = None

    def hold(self) -> None:
        """Has the function called from now on, until as many `release` as `hold` have come."""
        with self._lock:
            self._wishes += 1
            # A forked process inherits the object but not the thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name=self._what, daemon=True)
                self._thread.start()
            self._wanted.set()

    def release(self) -> None:
        """Takes one `hold` back; one last call may follow."""
        with self._lock:
            self._wishes -= 1
            if not self._wishes:
                self._wanted.clear()

    def _run(self) -> None:
        while self._wanted.wait():
            time.sleep(self._interval_s)
            observers.attempt(self._what, self._sample, None)
