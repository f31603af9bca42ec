"""Measurement interface of a benchmark: `Metrics.measure`, its blocks, and the samples kept."""

from __future__ import annotations

import logging
import math
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from time import perf_counter_ns, thread_time_ns
from types import TracebackType

from orbax_bench_core.measure import collectors, known_metrics, observers, profiling
from orbax_bench_core.measure.collectors import clock_readings
from orbax_bench_core.measure.definition import CPU, OF_CPU, Sample, block_name

_RESERVED = re.compile(rf"(\[\d+\]|{OF_CPU})$")


def default_metrics() -> list[str]:
    """The collector keys that `Metrics.measure` uses when it is given none, in order."""
    return list(collectors.DEFAULT_KEYS)


class Metrics:
    """Measures blocks of code and keeps every value.

    Blocks may nest and may run in several threads at once; an event that another thread causes
    (a background write, say) counts for every block open at that moment.

    Attributes:
        name: A name for people; None when there is none.
        samples: Every value measured so far, in the order in which the blocks ended, and every
            value recorded.
        notes: What collectors had to say beside numbers, line by line, by block (`save`,
            `save[1]`, ...): the top allocation sites, if `tracemalloc` was asked for.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self.samples: list[Sample] = []
        self.notes: dict[str, list[str]] = {}
        self._occurrences: Counter[str] = Counter()
        self._of_block: defaultdict[tuple[str, int], list[Sample]] = defaultdict(list)
        self._lock = threading.Lock()

    def measure(
        self,
        name: str,
        metric_keys: Sequence[str] | None = None,
        *,
        num_bytes: int | None = None,
    ) -> Block:
        """Measures the code inside `with metrics.measure("save"):`.

        Only that code is inside the clock. Collectors start before it and stop after it, and what
        the collectors of inner blocks cost is taken off the time of the blocks around them, as far
        as they share a thread. Make inputs ready (`jax.block_until_ready`) before the block and
        outputs ready inside it: work that JAX has only dispatched is not finished. An exception
        inside the block passes through after what was measured is recorded.

        Args:
            name: The operation, for example `save`. A name used again gets the next occurrence.
            metric_keys: Collectors to use; None for `default_metrics()`. The earlier a collector
                stands, the nearer it is to the clock. `time` is the clock itself.
            num_bytes: How many bytes the operation moves. Then the block also gives
                `5_inventory/operation_bytes` and `4_throughput/operation_gbps`, unless it raises.

        Returns:
            A context manager, for one use.

        Raises:
            TypeError: `metric_keys` is one string instead of a list of them.
            ValueError: The name is empty or ends in `[<number>]` or `:cpu`, `num_bytes` is
                negative, or a key is unknown; the message lists the known ones.
        """
        clock = _this_thread()
        called = clock.leave(perf_counter_ns())
        _check_name(name)
        if isinstance(metric_keys, str):
            raise TypeError(f"metric_keys is a list of collectors: write [{metric_keys!r}]")
        if num_bytes is not None and num_bytes < 0:
            raise ValueError(f"num_bytes must be 0 or more, got {num_bytes}")
        keys = collectors.DEFAULT_KEYS if metric_keys is None else tuple(metric_keys)
        collectors.check(keys)
        block = Block(
            name,
            keys,
            num_bytes,
            claim=self._claim,
            record=self._record,
            keep_notes=self.notes.__setitem__,
        )
        # This call too is no part of the operation around it.
        clock.come_back(called)
        return block

    def record(self, operation: str, metric: str, value: float) -> None:
        """Keeps a value that the author computed, beside what the collectors measured.

        Open blocks of this thread do not count the time that this takes.

        Args:
            operation: What the value describes: the latest block of that name to have started or,
                if there is none, an operation that has no block.
            metric: Name of a registered metric; the value is in its unit.
            value: The value, finite.

        Raises:
            KeyError: There is no such metric; the message names the nearest.
            ValueError: The operation's name is not one that `measure` takes, the value is infinite
                or not a number, or the operation has a value of this metric already.
        """
        clock = _this_thread()
        called = clock.leave(perf_counter_ns())
        _check_name(operation)
        unit = known_metrics.lookup(metric).unit
        if not math.isfinite(value):
            raise ValueError(f"{metric} of {operation!r} must be a finite number, got {value}")
        with self._lock:
            occurrence = max(0, self._occurrences[operation] - 1)
            sample = Sample(operation, occurrence, metric, float(value), unit)
            if any(kept.metric == metric for kept in self._of_block[operation, occurrence]):
                raise ValueError(
                    f"{sample.key} has a value already; record one value per metric and block"
                )
            self._keep([sample])
        observers.notify([sample])
        clock.come_back(called)

    @property
    def results(self) -> dict[str, tuple[float, str]]:
        """(value, unit) of every sample, by `Sample.key`, for example `save_0_basics/time_s`."""
        return {sample.key: (sample.value, sample.unit) for sample in list(self.samples)}

    def _claim(self, operation: str) -> int:
        with self._lock:
            occurrence = self._occurrences[operation]
            self._occurrences[operation] = occurrence + 1
        return occurrence

    def _record(self, samples: Sequence[Sample]) -> None:
        with self._lock:
            self._keep(samples)

    def _keep(self, samples: Sequence[Sample]) -> None:
        self.samples.extend(samples)
        for sample in samples[:1]:  # those of one call are of one block
            self._of_block[sample.operation, sample.occurrence].extend(samples)


def _check_name(operation: str) -> None:
    if not operation or _RESERVED.search(operation):
        raise ValueError(
            f"{operation!r} cannot name an operation: give a name that is not empty and does not "
            "end in [<number>], which marks the second and later blocks of one name, or in "
            f"{OF_CPU}, which marks the CPU time of an operation"
        )


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
        clock = self._clock = _this_thread()
        entered = clock.leave(perf_counter_ns())
        self._occurrence = self._claim(self._operation)
        self._trace = profiling.start(self._operation, outermost=clock.depth == 0)
        clock.depth += 1
        self._running = collectors.start(self._keys)
        self._overhead = clock.come_back(entered)
        self._started_ns = perf_counter_ns()

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        stopped_ns = perf_counter_ns()
        # A coroutine or an executor may leave a block in another thread than it entered it.
        here = _this_thread()
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


class _ThreadClock:
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


def _this_thread() -> _ThreadClock:
    try:
        clock: _ThreadClock = _local.clock
    except AttributeError:
        clock = _local.clock = _ThreadClock()
    return clock
