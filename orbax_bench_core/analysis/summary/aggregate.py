"""Aggregates of a run per point, operation and metric: quartiles, throughput, `summary.csv`."""

from __future__ import annotations

import collections
import csv
import dataclasses
import functools
import io
import itertools
import math
import operator
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, Final

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
from orbax_bench_core.config import ARMS, Conditions
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
    TOLERATED_SHARE,
)
from orbax_bench_core.records import (
    Columns,
    CompanyFinder,
    ErrorInfo,
    Layout,
    Repeat,
    Series,
    StoreFlagCounter,
    Verified,
    weakest,
)
from orbax_bench_core.sweep import BLOCK_SIZE

_Key = tuple[str, str]
"""Operation and metric."""

GAINED: Final = "7_memory/host_peak_rss_diff_mb"
"""Metric of what an operation added to the peak of the process, in MiB."""

SHOWN: Final = frozenset(
    {
        *(BYTES, PAGE_FAULTS, BLOCKED.name, LOST.name, LOST_STEPS.name),
        *(STEPS.name, STEP_MEDIAN.name, STEP_P99.name, STEP_MAX.name, SAVE_SHARE.name),
        *(GAINED, *STAGE_METRICS),
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
    """Aggregates the repeats of a run that count.

    Args:
        repeats: Repeats, series by series in the order in which they are to appear.
        table: Takes all metrics of a point once it is complete; then the summary keeps only what
            reports show, so that memory does not grow by every metric of every point.
    """
    metrics: list[MetricSummary] = []
    operations: list[OperationSummary] = []
    points: list[PointStatus] = []
    hosts = HostFinder()
    company = CompanyFinder()
    measured = _measured(repeats, company)
    for series, found_repeats in itertools.groupby(measured, key=lambda repeat: repeat.series):
        point = _Point(series)
        for repeat in found_repeats:
            for record in repeat.records.values():
                hosts.add(record)
            point.add(repeat)
        found = point.metrics()
        if table is not None:
            table.write(found)
            found = [metric for metric in found if metric.metric in SHOWN]
        metrics += found
        operations += point.operations()
        points.append(point.status())
    not_alone = company.found()
    points = [
        dataclasses.replace(point, not_alone=not_alone.get(point.point_id, 0)) for point in points
    ]
    return RunSummary(metrics=metrics, operations=operations, points=points, hosts=hosts.found())


def _measured(repeats: Iterable[Repeat], company: CompanyFinder) -> Iterator[Repeat]:
    """Yields the repeats that are no warm-ups, and shows all of them to `company`."""
    for repeat in repeats:
        company.add(repeat)
        if not repeat.warmup:
            yield repeat


class SummaryTable:
    """`summary.csv`: one line per point, operation and metric."""

    def __init__(self, file: IO[bytes]) -> None:
        """Begins the table in `file`, which stays open."""
        self._text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        fields = [field.name for field in dataclasses.fields(MetricSummary)]
        self._values = operator.attrgetter(*fields)
        self._writer = csv.writer(self._text, lineterminator="\n")
        self._writer.writerow(fields)

    def write(self, metrics: Iterable[MetricSummary]) -> None:
        """Adds lines."""
        # `asdict` would copy every value, which takes longer than all else of a large table.
        self._writer.writerows(map(self._values, metrics))

    def end(self) -> None:
        """Hands the file back to whoever opened it."""
        self._text.detach()


class _Point:
    """Values of the repeats of one series."""

    def __init__(self, series: Series) -> None:
        self._id = series.id
        self._name = series.name
        self._conditions = series.point.conditions
        self._rows: list[Columns] = []
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
        self._verified.add(repeat.verified)
        self._store.add(repeat)
        self._hosts = len(hosts)
        self._stragglers.add(hosts)
        self._rows += repeat.columns.values()
        for (operation, _), value in repeat.seconds().items():
            self._slowest.setdefault(operation, []).append(value)
        # Every host states the bytes of all: they are counted once.
        layout, values = next(iter(repeat.columns.values()))
        for place in layout.places(BYTES):
            self._gib.setdefault(layout.operations[place], []).append(values[place] / _GIB)
        for place in sorted(place for total in _ORBAX_TOTALS for place in layout.places(total)):
            self._orbax_gib.setdefault(layout.operations[place], []).append(values[place])

    def metrics(self) -> list[MetricSummary]:
        """Returns every metric, over all repeats and hosts."""
        layouts = {id(layout) for layout, _ in self._rows}
        if len(layouts) == 1 and _once_each(self._rows[0].layout):
            return self._summaries(self._rows[0].layout, [values for _, values in self._rows])
        return [self._summary(key, values) for key, values in self._values.items()]

    @functools.cached_property
    def _values(self) -> dict[_Key, list[float]]:
        """Values of each metric of each operation, over all occurrences, repeats and hosts."""
        found: dict[_Key, list[float]] = {}
        for layout, values in self._rows:
            for key, value in zip(_keys(layout), values, strict=True):
                found.setdefault(key, []).append(value)
        return found

    @functools.cached_property
    def _units(self) -> dict[_Key, str]:
        """Unit of each metric of each operation."""
        layouts = {id(layout): layout for layout, _ in self._rows}
        return {
            key: unit
            for layout in layouts.values()
            for key, unit in zip(_keys(layout), layout.units, strict=True)
        }

    def _resident(self, operation: str) -> Sequence[float]:
        """Returns the share of a checkpoint that was in the page cache before an operation."""
        return [
            values[place]
            for layout, values in self._rows
            for place in layout.places(RESIDENT)
            if layout.operations[place] == operation
        ]

    def operations(self) -> list[OperationSummary]:
        """Returns every operation, by its slowest hosts."""
        stragglers, store = self._stragglers.found(), self._store.found()
        return [
            OperationSummary(
                time=self._summary((operation, TIME), seconds),
                throughput=self._throughput(operation, seconds),
                straggler=stragglers.get(operation),
                flag=cache_flag(self._conditions, operation, self._resident(operation)),
                store=store[operation].sentence if operation in store else "",
                seconds=tuple(seconds),
            )
            for operation, seconds in self._slowest.items()
        ]

    def status(self) -> PointStatus:
        """Returns how the repeats ended."""
        layouts = list({id(layout): layout for layout, _ in self._rows}.values())
        keys = dict.fromkeys(key for layout in layouts for key in _keys(layout))
        loads = [operation for operation, metric in keys if metric == RESIDENT]
        measured = any(metric != RESIDENT for _, metric in keys)
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
            **self._ended,
        )

    def _throughput(self, operation: str, seconds: list[float]) -> float | None:
        gib = (self._gib or self._orbax_gib).get(operation, [])
        if len(gib) != len(seconds) or sum(seconds) == 0:
            return None
        return sum(gib) / sum(seconds)

    def _summaries(self, layout: Layout, rows: Sequence[Sequence[float]]) -> list[MetricSummary]:
        """Returns what `_summary` does of all metrics, each of which every record has once."""
        import numpy as np

        values, count = np.array(rows), len(rows)
        usual = np.isfinite(values) & ~(np.signbit(values) & (values == 0))
        if not usual.all():  # arithmetic warns of them, or sorting mixes them
            return [self._summary(key, found) for key, found in self._values.items()]
        ordered = np.sort(values, axis=0)
        found = {
            "mean": np.array([math.fsum(column) / count for column in values.T.tolist()]),
            "median": (ordered[(count - 1) // 2] + ordered[count // 2]) / 2,
            "q25": _cut(ordered, 1, 4),
            "q75": _cut(ordered, 3, 4),
            "p99": _cut(ordered, 99, 100),
            "minimum": ordered[0],
            "maximum": ordered[-1],
        }
        each = zip(*(values.tolist() for values in found.values()), strict=True)
        return [
            MetricSummary(
                point_id=self._id,
                point=self._name,
                operation=operation,
                metric=metric,
                unit=unit,
                hosts=self._hosts,
                n=count,
                **dict(zip(found, numbers, strict=True)),
            )
            for (operation, metric), unit, numbers in zip(
                _keys(layout), layout.units, each, strict=True
            )
        ]

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
            q25=_cut(values, 1, 4),
            q75=_cut(values, 3, 4),
            p99=_cut(values, 99, 100),
            minimum=values[0],
            maximum=values[-1],
        )


def _keys(layout: Layout) -> Sequence[_Key]:
    """Returns operation and metric of each sample."""
    return tuple(zip(layout.operations, layout.metrics, strict=True))


@functools.lru_cache(maxsize=256)
def _once_each(layout: Layout) -> bool:
    """Returns whether there is one sample at most of each metric of each operation."""
    return len(set(_keys(layout))) == len(layout.metrics)


def _cut(ordered: Sequence[Any], part: int, parts: int) -> Any:
    """Returns one cut of `statistics.quantiles(method="inclusive")`, which computes all of them.

    Of columns in order, each in a row of its own, it returns that of each.
    """
    if len(ordered) == 1:
        return ordered[0]  # which may be infinite
    place, rest = divmod(part * (len(ordered) - 1), parts)
    after = ordered[min(place + 1, len(ordered) - 1)]
    return (ordered[place] * (parts - rest) + after * rest) / parts


def cache_flag(conditions: Conditions, operation: str, shares: Sequence[float]) -> str | None:
    """Returns what is wrong with the page cache that an operation met, or None.

    Args:
        conditions: What the point asks for.
        operation: Name of the operation.
        shares: Share of the checkpoint that was resident before it, by repeat; empty when it was
            not measured.
    """
    if not shares:
        return None
    if conditions.cache == "cold" and max(shares) > TOLERATED_SHARE:
        return (
            f"{operation} claims to be cold, but up to {max(shares):.0%} of the checkpoint was in "
            "the page cache: do not read it as a cold load"
        )
    if conditions.cache == "warm" and min(shares) < 1 - TOLERATED_SHARE:
        return (
            f"{operation} claims to be warm, but only {min(shares):.0%} of the checkpoint was in "
            "the page cache: there may be too little memory for it"
        )
    return None


def uncontrolled_flag(conditions: Conditions, loads: Sequence[str]) -> str | None:
    """Returns that nothing controlled the page cache of a point that asks for a cold one."""
    if conditions.cache == "cold" and not loads:
        return (
            "cache: cold had no effect: the checkpoint is remote, or the benchmark does not call "
            "context.prepare_load"
        )
    return None
