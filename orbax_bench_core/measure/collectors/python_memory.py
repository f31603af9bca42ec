"""Collector `tracemalloc`: peak of what Python allocates, and the sites that keep most."""

from __future__ import annotations

import threading
import tracemalloc

from orbax_bench_core.measure.collectors.base import Reading
from orbax_bench_core.measure.definition import Metric

PYTHON_PEAK = Metric(
    name="7_memory/tracemalloc_peak_diff_mb",
    unit="MiB",
    better="lower",
    description="Peak of traced Python allocations during the block, less those at its start",
    collector="tracemalloc",
)
METRICS = (PYTHON_PEAK,)

_TOP_SITES = 15
_TOP_SITES_HEADER = f"Python's top {_TOP_SITES} allocation sites by what is still allocated:"

_lock = threading.Lock()
_open: list[Tracemalloc] = []
_we_started = False


class Tracemalloc:
    """Peak of traced memory above the start, in MiB, and the top allocation sites as notes.

    The interpreter has one peak, and an inner block needs it reset. So every start and stop first
    credits the peak so far to all open blocks: each knows its own true peak, nested or not.

    Before Python 3.12.9 a thread that ends while tracing stops can crash the process
    (https://github.com/python/cpython/issues/128679); a repeat is then tried again.
    """

    def __init__(self) -> None:
        # once stopped, a heading and a line per site: MiB, number of allocations, place
        self.notes: list[str] = []
        self._before = 0
        self._peak = 0

    def start(self) -> None:
        """Starts tracing unless it runs already, and reads the traced memory."""
        global _we_started  # noqa: PLW0603  # tracing is process-wide, and so is who began it
        with _lock:
            if not tracemalloc.is_tracing():
                tracemalloc.start()
                _we_started = True
            self._before = self._peak = _credit_peak()
            _open.append(self)

    def stop(self) -> list[Reading]:
        """The peak since `start`; stops tracing with the last open block if we began it."""
        global _we_started  # noqa: PLW0603  # as in start
        with _lock:
            _credit_peak()
            _open.remove(self)
            self.notes = _top_sites()
            # What that allocated is no peak of the blocks that are still open.
            tracemalloc.reset_peak()
            if _we_started and not _open:
                tracemalloc.stop()
                _we_started = False
        return [Reading(PYTHON_PEAK.name, (self._peak - self._before) / 2**20, PYTHON_PEAK.unit)]

    def credit(self, peak: int) -> None:
        """Raises this block's peak to `peak` bytes if that is higher."""
        self._peak = max(self._peak, peak)


def _credit_peak() -> int:
    current, peak = tracemalloc.get_traced_memory()
    for window in _open:
        window.credit(peak)
    tracemalloc.reset_peak()
    return current


def _top_sites() -> list[str]:
    sites = tracemalloc.take_snapshot().statistics("lineno")[:_TOP_SITES]
    return [
        _TOP_SITES_HEADER,
        *(
            f"{site.size / 2**20:10.3f} MiB {site.count:8d} x "
            f"{site.traceback[0].filename}:{site.traceback[0].lineno}"
            for site in sites
        ),
    ]
