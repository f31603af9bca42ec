"""Measurement interface of a benchmark: `Metrics.measure`, its blocks, and the samples kept."""

from __future__ import annotations

import math
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Sequence
from time import perf_counter_ns

from orbax_bench_core.measure import collectors, known_metrics, observers
from orbax_bench_core.measure.block import Block, this_thread
from orbax_bench_core.measure.definition import OF_CPU, Sample

_RESERVED = re.compile(rf"(\[\d+\]|{OF_CPU})$")


def default_metrics() -> list[str]:
    """The collector keys that `Metrics.measure` uses when it is given none, in order."""
    return list(collectors.DEFAULT_KEYS)


class Metrics:
    """Measures blocks of code and keeps every value.

    Blocks may nest and may run in several threads at once; an event that another thread causes
    (a background write, say) counts for every block open at that moment.

        metrics = Metrics()
        with metrics.measure("load", num_bytes=8 * 2**30):
            restored = jax.block_until_ready(ocp.load(path, target))

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
        self, name: str, metric_keys: Sequence[str] | None = None, *, num_bytes: int | None = None
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
        clock = this_thread()
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
        clock = this_thread()
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
