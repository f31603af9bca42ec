"""Measured block: profiler trace, collectors, clock and operation, from outside to inside."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from time import perf_counter_ns, thread_time_ns
from types import TracebackType

from orbax_bench_core.measure import collectors, observers, profiling
from orbax_bench_core.measure.collectors import clock_readings
from orbax_bench_core.measure.definition import CPU, Sample, block_name

_log = logging.getLogger(__name__)


class Block:
    """The context manager that `Metrics.measure` returns.

    From outside to inside: profiler trace, collectors (the last key outermost), clock, operation.
    """

    __slots__ = (
        "_claim",
        "_clock",
        "_keep_notes",
        "_keys",
        "_num_bytes",
        "_occurrence",
        "_operation",
        "_overhead",
        "_record",
        "_running",
        "_started_ns",
        "_trace",
    )

    def __init__(
        self,
        operation: str,
        keys: tuple[str, ...],
        num_bytes: int | None,
        *,
        claim: Callable[[str], int],
        record: Callable[[Sequence[Sample]], None],
        keep_notes: Callable[[str, list[str]], None],
    ) -> None:
        self._operation = operation
        self._keys = keys
        self._num_bytes = num_bytes
        self._claim = claim
        self._record = record
        self._keep_notes = keep_notes

    def __enter__(self) -> None:
        clock = self._clock = this_thread()
        entered = clock.leave(perf_counter_ns())
        self._occurrence = self._claim(self._operation)
        self._trace = profiling.start(self._operation, outermost=clock.depth == 0)
        clock.depth += 1
        self._running = collectors.start(self._keys)
        self._overhead = clock.come_back(entered)
        # Last of all: what was done so far is no part of the operation.
        self._started_ns = perf_counter_ns()

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Before anything else: what follows is no part of the operation.
        stopped_ns = perf_counter_ns()
        # A coroutine or an executor may leave a block in another thread than it entered it.
        here = this_thread()
        stopped = here.leave(stopped_ns)
        excluded_ns, excluded_cpu_ns = (
            now - then for now, then in zip(self._clock.overhead, self._overhead, strict=True)
        )
        seconds = (stopped_ns - self._started_ns - excluded_ns) / 1e9
        try:
            self._finish(seconds, excluded_cpu_ns / 1e9, None if error_type else self._num_bytes)
        finally:
            self._clock.depth -= 1
            here.come_back(stopped)

    def _finish(self, seconds: float, excluded_cpu_s: float, num_bytes: int | None) -> None:
        # What the collectors hold is freed here, on our time, and not when the block goes.
        running, self._running = self._running, ()
        try:
            readings = collectors.stop(running)
        finally:
            if self._trace is not None:
                self._trace.stop()
        readings = [*clock_readings(seconds, num_bytes, self._keys), *readings]
        samples = [
            Sample(
                self._operation,
                self._occurrence,
                metric,
                max(0.0, value - excluded_cpu_s) if metric == CPU else value,
                unit,
            )
            for metric, value, unit in readings
        ]
        self._record(samples)
        notes = collectors.notes(running)
        if notes:
            name = block_name(self._operation, self._occurrence)
            _log.info("%s: %s", name, "\n".join(notes))
            self._keep_notes(name, notes)
        observers.notify(samples)


class ThreadClock:
    """State that the blocks of one thread share.

    An enclosing block's time is its wall time less the growth of the first `overhead` while it was
    open, and its CPU time is less that of the second. A running total, rather than an amount handed
    from child to parent, stays right when blocks overlap without nesting, as coroutines' do.
    """

    __slots__ = ("depth", "overhead")

    def __init__(self) -> None:
        # what starting and stopping blocks has cost this thread so far: wall and CPU time, in ns
        self.overhead = (0, 0)
        self.depth = 0  # number of blocks that are open in this thread

    def leave(self, now_ns: int) -> tuple[int, int]:
        """Notes that the thread measures from now on, and no longer works on the operation."""
        wall_ns, cpu_ns = self.overhead
        return wall_ns - now_ns, cpu_ns - thread_time_ns()

    def come_back(self, left: tuple[int, int]) -> tuple[int, int]:
        """Counts the time since `leave`, and returns the new overhead."""
        # Set, not added to: what ran in between may itself have measured, and counted, blocks.
        wall_ns, cpu_ns = left
        self.overhead = overhead = (wall_ns + perf_counter_ns(), cpu_ns + thread_time_ns())
        return overhead


_local = threading.local()


def this_thread() -> ThreadClock:
    """Returns the clock that all blocks of the calling thread share."""
    try:
        clock: ThreadClock = _local.clock
    except AttributeError:
        clock = _local.clock = ThreadClock()
    return clock
