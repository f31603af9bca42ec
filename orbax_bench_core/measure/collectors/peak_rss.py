"""Collector `peak_rss`: the largest resident set of the process within a block.

It is the kernel's own mark, VmHWM, where this process may reset it; elsewhere a thread samples the
resident set.
"""

from __future__ import annotations

import functools
import threading

from orbax_bench_core.measure.collectors.base import MetricGroup, Reading
from orbax_bench_core.measure.collectors.peak_mark import has_mark, read_mark, reset_mark
from orbax_bench_core.measure.collectors.rss import resident_bytes
from orbax_bench_core.measure.collectors.sampler import Sampler
from orbax_bench_core.measure.definition import Metric

_peak = functools.partial(Metric, collector="peak_rss")
PEAK = _peak(
    name="7_memory/host_peak_rss_mb",
    unit="MiB",
    better="lower",
    description=(
        "Largest resident set of the process inside the block: the kernel's own mark (VmHWM), or "
        "the largest of samples 10 ms apart where host_peak_rss_is_bound is 1"
    ),
)
PEAK_DIFF = _peak(
    name="7_memory/host_peak_rss_diff_mb",
    unit="MiB",
    better="lower",
    description="host_peak_rss_mb less the resident set at the start of the block",
)
IS_BOUND = _peak(
    name="7_memory/host_peak_rss_is_bound",
    unit="",
    better="none",
    description=(
        "1 where the kernel's mark cannot be reset, so that the peak is sampled and the true one "
        "is at least that; 0 where it is exact"
    ),
)
_PEAK = MetricGroup(PEAK, PEAK_DIFF, IS_BOUND)
METRICS = _PEAK.metrics

# Blocks that are open in this process, which has one mark for all of them.
_lock = threading.Lock()
_open: list[PeakRss] = []


class PeakRss:
    """Peak of the resident set, in MiB, absolute and above the start.

    The process has one mark, and an inner block needs it reset. So every start and stop first
    credits the peak so far to all open blocks: each knows its own peak, nested or not.
    """

    def __init__(self) -> None:
        self._exact = has_mark()
        self._before = 0
        self._peak = 0

    def start(self) -> None:
        """Begins a peak of its own."""
        with _lock:
            if self._exact:
                if _open:
                    _credit(read_mark())
                reset_mark()
            self._before = self._peak = resident_bytes()
            _open.append(self)
        if not self._exact:
            _sampler.hold()

    def stop(self) -> list[Reading]:
        """The peak since `start`."""
        if not self._exact:
            _sampler.release()
        with _lock:
            try:
                _credit(read_mark() if self._exact else resident_bytes())
            finally:
                _open.remove(self)
        peak, risen = self._peak, self._peak - self._before
        return _PEAK.readings(peak / 2**20, risen / 2**20, not self._exact)

    def credit(self, peak: int) -> None:
        """Raises this block's peak to `peak` bytes if that is higher."""
        self._peak = max(self._peak, peak)


def _credit(peak: int) -> None:
    for window in _open:
        window.credit(peak)


def _sample() -> None:
    with _lock:
        _credit(resident_bytes())


_sampler = Sampler("sample the resident set", _sample)
