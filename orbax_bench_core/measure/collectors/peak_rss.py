"""Collector `peak_rss`: the largest resident set inside the block."""

from __future__ import annotations

import threading

from orbax_bench_core.measure.collectors import high_water
from orbax_bench_core.measure.collectors.base import Reading
from orbax_bench_core.measure.collectors.resident import resident_bytes
from orbax_bench_core.measure.collectors.sampler import Sampler
from orbax_bench_core.measure.definition import Metric

PEAK = Metric(
    name="7_memory/host_peak_rss_mb",
    unit="MiB",
    better="lower",
    description=(
        "Largest resident set of the process inside the block: the kernel's own mark (VmHWM), or "
        "the largest of samples 10 ms apart where host_peak_rss_is_bound is 1"
    ),
    collector="peak_rss",
)
PEAK_DIFF = Metric(
    name="7_memory/host_peak_rss_diff_mb",
    unit="MiB",
    better="lower",
    description="host_peak_rss_mb less the resident set at the start of the block",
    collector="peak_rss",
)
IS_BOUND = Metric(
    name="7_memory/host_peak_rss_is_bound",
    unit="",
    better="none",
    description=(
        "1 where the kernel's mark cannot be reset, so that the peak is sampled and the true one "
        "is at least that; 0 where it is exact"
    ),
    collector="peak_rss",
)
METRICS = (PEAK, PEAK_DIFF, IS_BOUND)

_lock = threading.Lock()
_open: list[PeakRss] = []


class PeakRss:
    """Peak of the resident set, in MiB, absolute and above the start.

    The process has one mark, and an inner block needs it reset. So every start and stop first
    credits the peak so far to all open blocks: each knows its own peak, nested or not.
    """

    def __init__(self) -> None:
        self._exact = high_water.is_available()
        self._before = 0
        self._peak = 0

    def start(self) -> None:
        """Begins a peak of its own."""
        with _lock:
            if self._exact:
                if _open:
                    _credit(high_water.read())
                high_water.reset()
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
                _credit(high_water.read() if self._exact else resident_bytes())
            finally:
                _open.remove(self)
        return [
            Reading(PEAK.name, self._peak / 2**20, PEAK.unit),
            Reading(PEAK_DIFF.name, (self._peak - self._before) / 2**20, PEAK_DIFF.unit),
            Reading(IS_BOUND.name, float(not self._exact), IS_BOUND.unit),
        ]

    def credit(self, peak: int) -> None:
        """Raises this block's peak to `peak` bytes if that is higher."""
        self._peak = max(self._peak, peak)


def _credit(peak: int) -> None:
    for one in _open:
        one.credit(peak)


def _sample() -> None:
    with _lock:
        _credit(resident_bytes())


_sampler = Sampler("sample the resident set", _sample)
