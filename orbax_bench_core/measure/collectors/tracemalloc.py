"""Collector `tracemalloc`: the peak of Python's own allocations. Opt-in: it slows all Python."""

from __future__ import annotations

import logging
import threading
import tracemalloc

from orbax_bench_core.measure.collectors.base import Reading
from orbax_bench_core.measure.definition import Metric

PEAK = Metric(
    name="7_memory/tracemalloc_peak_diff_mb",
    unit="MiB",
    better="lower",
    description="Peak of traced Python allocations during the block, less those at its start",
    collector="tracemalloc",
)
METRICS = (PEAK,)

_log = logging.getLogger(__name__)
_TOP_SITES = 15

_lock = threading.Lock()
_open: list[Tracemalloc] = []
_we_started = False


class Tracemalloc:
    """Peak of traced memory above the start, in MiB; logs the top allocation sites at INFO.

    The interpreter has one peak, and an inner block needs it reset. So every start and stop first
    credits the peak so far to all open blocks: each knows its own true peak, nested or not.
    """

    def __init__(self) -> None:
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
            if _log.isEnabledFor(logging.INFO):
                _log_top_sites()
            if _we_started and not _open:
                tracemalloc.stop()
                _we_started = False
        return [Reading(PEAK.name, (self._peak - self._before) / 2**20, PEAK.unit)]

    def credit(self, peak: int) -> None:
        """Raises this block's peak to `peak` bytes if that is higher."""
        self._peak = max(self._peak, peak)


def _credit_peak() -> int:
    current, peak = tracemalloc.get_traced_memory()
    for one in _open:
        one.credit(peak)
    tracemalloc.reset_peak()
    return current


def _log_top_sites() -> None:
    sites = tracemalloc.take_snapshot().statistics("lineno")[:_TOP_SITES]
    _log.info("top allocation sites:\n%s", "\n".join(str(site) for site in sites))
