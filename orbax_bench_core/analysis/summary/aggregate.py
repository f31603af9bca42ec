"""Aggregates of a run per point, operation and metric: quartiles, throughput, `summary.csv`."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from orbax_bench_core.analysis.summary.cache import cache_flag, uncontrolled_flag
from orbax_bench_core.analysis.summary.csv_file import SummaryTable
from orbax_bench_core.analysis.summary.effects import EffectFinder
from orbax_bench_core.analysis.summary.hosts import HostFinder
from orbax_bench_core.analysis.summary.model import (
    Failure,
    MetricSummary,
    OperationSummary,
    PointStatus,
    RunSummary,
)
from orbax_bench_core.analysis.summary.stages import STAGE_METRICS
from orbax_bench_core.analysis.summary.straggler import StragglerFinder
from orbax_bench_core.config import ARMS
from orbax_bench_core.measure import (
    BLOCKED,
    BYTES,
    LOST,
    LOST_STEPS,
    PAGE_FAULTS,
    RESIDENT_SHARE,
    SAVE_SHARE,
    STEP_MAX,
    STEP_MEDIAN,
    STEP_P99,
    STEPS,
    TIME,
)
from orbax_bench_core.records import (
    ErrorInfo,
    OverlapFinder,
    Repeat,
    Series,
    StoreFlagCounter,
    Verified,
    weakest,
)
from orbax_bench_core.sweep import BLOCK_SIZE

_Key = tuple[str, str]
"""Operation and metric."""

PEAK: Final = "7_memory/host_peak_rss_mb"
"""Metric of the peak of the process, in MiB; its growth says nothing where memory is reused."""
READ: Final = "6_io/disk_read_bytes"
WRITTEN: Final = "6_io/disk_write_bytes"
"""Metrics of what an operation moved from and to storage."""

SHOWN: Final = frozenset(
    {
        *(BYTES, PAGE_FAULTS, BLOCKED.name, LOST.name, LOST_STEPS.name),
        *(STEPS.name, STEP_MEDIAN.name, STEP_P99.name, STEP_MAX.name, SAVE_SHARE.name),
        *(PEAK, READ, WRITTEN, *STAGE_METRICS),
    }
)
"""Metrics beside the times that reports show."""

_ORBAX_TOTALS = ("5_inventory/save_total_gb", "5_inventory/load_total_gb")
_GIB = 2**30
RESIDENT = RESIDENT_SHARE.name
NOTHING_MEASURED: Final = (
    "its repeats passed without one sample, so that nothing is known of it: wrap the operation in "
    '`with metrics.measure("save"):`'
)


def summarize(repeats: Iterable[Repeat], table: SummaryTable | None = None) -> RunSummary:
    """Aggregates the repeats of a run that count."""
    metrics: list[MetricSummary] = []
    operations: list[OperationSummary] = []
    points: list[PointStatus] = []
    hosts = HostFinder()
    overlaps = OverlapFinder()
    traced: collections.Counter[str] = collections.Counter()
    measured = _measured(repeats, overlaps, traced)
    for series, found_repeats in itertools.groupby(measured, key=lambda repeat: repeat.series):
        point = _Point(series)
        for repeat in found_repeats:
            for record in repeat.records.values():
                hosts.add(record)
            point.add(repeat)
        metrics += point.metrics(table)
        operations += point.operations()
        points.append(point.status())
    not_alone = overlaps.found()
    points = [
        dataclasses.replace(
            point, not_alone=not_alone.get(point.point_id, 0), traced=traced[point.point_id]
        )
        for point in points
    ]
    return RunSummary(metrics=metrics, operations=operations, points=points, hosts=hosts.found())


def _measured(
    repeats: Iterable[Repeat], overlaps: OverlapFinder, traced: collections.Counter[str]
) -> Iterator[Repeat]:
    """Yields the repeats that are no warm-ups; shows all of them to `overlaps`, and counts traces.

    `traced` is by id of the series.
    """
    for repeat in repeats:
        overlaps.add(repeat)
        traced[repeat.series.id] += repeat.traced
        if not repeat.warmup:
            yield repeat


class _Point:
    """Values of the repeats of one series."""

    def __init__(self, series: Series) -> None:
        self._id = series.id
        self._name = series.name
        self._conditions = series.point.conditions
        self._values: dict[_Key, list[float]] = {}
        self._units: dict[_Key, str] = {}
        self._slowest: dict[str, list[float]] = {}
        self._gib: dict[str, list[float]] = {}
        self._orbax_gib: dict[str, list[float]] = {}
        self._stragglers = StragglerFinder()
        self._hosts = 0
        self._ended = {"passed": 0, "failed": 0, "skipped": 0}
        self._reason = ""
        self._verified: set[Verified] = set()
        self._store = StoreFlagCounter()
        self._effects = EffectFinder()
        self._passed_in_block: collections.Counter[int] = collections.Counter()
        self._failures: dict[str, list[tuple[int, ErrorInfo]]] = {}
        self._retried: list[str] = []
        self._checkpoint = series.point.checkpoint.label
        self._checkpoint_bytes: int | None = None

    def add(self, repeat: Repeat) -> None:
        """Takes one repeat."""
        self._ended[repeat.status] += 1
        for record in repeat.records.values():
            self._effects.add(record.effects)
        if not repeat.counts:
            self._reason = self._reason or repeat.reason
            if repeat.status == "failed" and repeat.error is not None:
                failed = (repeat.index, repeat.error)
                self._failures.setdefault(repeat.error.said, []).append(failed)
            return
        if repeat.first_failed:
            self._retried.append(repeat.first_reason)
        if repeat.block is not None:
            self._passed_in_block[repeat.block] += 1
        hosts = list(repeat.records.values())
        if hosts[0].state is not None:
            self._checkpoint_bytes = hosts[0].state.num_bytes
        self._verified.add(repeat.verified)
        self._store.add(repeat)
        self._hosts = len(hosts)
        self._stragglers.add(hosts)
        for record in hosts:
            for sample in record.samples:
                key = sample.operation, sample.metric
                self._values.setdefault(key, []).append(sample.value)
                self._units[key] = sample.unit
        for (operation, _), value in repeat.seconds().items():
            self._slowest.setdefault(operation, []).append(value)
        # Every host states the bytes of all: they are counted once.
        for sample in hosts[0].samples:
            if sample.metric == BYTES:
                self._gib.setdefault(sample.operation, []).append(sample.value / _GIB)
            elif sample.metric in _ORBAX_TOTALS:
                self._orbax_gib.setdefault(sample.operation, []).append(sample.value)

    def metrics(self, table: SummaryTable | None) -> list[MetricSummary]:
        """Returns every metric, over all repeats and hosts; with a table only what reports show."""
        found = [self._summary(key, values) for key, values in self._values.items()]
        if table is None:
            return found
        table.write(found)
        return [metric for metric in found if metric.metric in SHOWN]

    def operations(self) -> list[OperationSummary]:
        """Returns every operation, by its slowest hosts."""
        stragglers, store = self._stragglers.found(), self._store.found()
        return [
            OperationSummary(
                time=self._summary((operation, TIME), seconds),
                throughput=self._throughput(operation, seconds),
                straggler=stragglers.get(operation),
                flag=cache_flag(
                    self._conditions, operation, self._values.get((operation, RESIDENT), ())
                ),
                store=store[operation].sentence if operation in store else "",
                seconds=tuple(seconds),
            )
            for operation, seconds in self._slowest.items()
        ]

    def status(self) -> PointStatus:
        """Returns how the repeats ended."""
        loads = [operation for operation, metric in self._values if metric == RESIDENT]
        measured = any(metric != RESIDENT for _, metric in self._values)
        flag = uncontrolled_flag(self._conditions, loads) if measured else NOTHING_MEASURED
        return PointStatus(
            point_id=self._id,
            point=self._name,
            reason=self._reason,
            verified=weakest(self._verified),
            effects=self._effects.found(),
            flag=flag if self._ended["passed"] else None,
            failures=tuple(
                Failure(error=found[0][1], repeats=tuple(index for index, _ in found))
                for found in self._failures.values()
            ),
            measured=measured,
            blocks=frozenset(
                block
                for block, passed in self._passed_in_block.items()
                if passed * len(ARMS) == BLOCK_SIZE
            ),
            retried=len(self._retried),
            retried_for=next(iter(self._retried), ""),
            checkpoint=self._checkpoint,
            checkpoint_bytes=self._checkpoint_bytes,
            **self._ended,
        )

    def _throughput(self, operation: str, seconds: list[float]) -> float | None:
        gib = (self._gib or self._orbax_gib).get(operation, [])
        if len(gib) != len(seconds) or sum(seconds) == 0:
            return None
        return sum(gib) / sum(seconds)

    def _summary(self, key: tuple[str, str], found: list[float]) -> MetricSummary:
        values = sorted(found)
        return MetricSummary(
            point_id=self._id,
            point=self._name,
            operation=key[0],
            metric=key[1],
            unit=self._units[key],
            hosts=self._hosts,
            n=len(values),
            mean=statistics.fmean(values),
            median=statistics.median(values),
            q25=cut(values, 1, 4),
            q75=cut(values, 3, 4),
            p99=cut(values, 99, 100),
            minimum=values[0],
            maximum=values[-1],
        )


def cut(ordered: Sequence[float], part: int, parts: int) -> float:
    """Returns one cut of `statistics.quantiles(method="inclusive")`, which computes all of them."""
    if len(ordered) == 1:
        return ordered[0]  # which may be infinite
    place, rest = divmod(part * (len(ordered) - 1), parts)
    after = ordered[min(place + 1, len(ordered) - 1)]
    return (ordered[place] * (parts - rest) + after * rest) / parts
