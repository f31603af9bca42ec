"""Aggregates of a run per point, operation and metric: quartiles, throughput, `summary.csv`."""

from __future__ import annotations

import collections
import csv
import dataclasses
import functools
import io
import itertools
import operator
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Final

from orbax_bench_core import measure, pages, records
from orbax_bench_core.analysis.page_cache import cache_states
from orbax_bench_core.analysis.summary import model
from orbax_bench_core.analysis.summary.effects import strongest_effects
from orbax_bench_core.analysis.summary.hosts import HostFinder, stragglers_of
from orbax_bench_core.config import Conditions
from orbax_bench_core.errors import presentable
from orbax_bench_core.gate import cut

_Key = tuple[str, str]
"""Operation and metric."""

STAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "waits for others": (
        "2_save_breakdown/checkpoint_start_sync_s",
        "2_save_breakdown/blocking_wait_prev_s",
        "2_save_breakdown/wait_for_prev_s",
    ),
    "makes folders": (
        "2_save_breakdown/directory_creation_s",
        "2_save_breakdown/async_directory_creation_s",
        "2_save_breakdown/background_directory_creation_s",
    ),
    "device to host": ("2_save_breakdown/blocking_d2h_s",),
    "writes arrays": ("2_save_breakdown/worker_io_s", "2_save_breakdown/commit_s"),
    "reads arrays": ("3_load_breakdown/worker_io_s", "3_load_breakdown/primary_deserialization_s"),
    "sends to replicas": ("3_load_breakdown/broadcast_s",),
    "writes metadata": (
        "2_save_breakdown/metadata_write_s",
        "2_save_breakdown/background_meta_write_s",
    ),
    "merges OCDBT": ("2_save_breakdown/ocdbt_merge_s", "2_save_breakdown/background_ocdbt_merge_s"),
    "commits": ("2_save_breakdown/background_finalize_s", "2_save_breakdown/finalize_s"),
}
"""Metrics of each stage; releases of Orbax have one or several of them, which say the same.

Stages that contain others, such as the whole time a caller waits, are left out.
"""

STAGE_METRICS: Final = frozenset(metric for metrics in STAGES.values() for metric in metrics)

PEAK: Final = "7_memory/host_peak_rss_mb"
"""Metric of the peak of the process, in MiB; its growth says nothing where memory is reused."""
READ: Final = "6_io/disk_read_bytes"
WRITTEN: Final = "6_io/disk_write_bytes"
"""Metrics of what an operation moved from and to storage."""

SHOWN: Final = frozenset(
    {
        *(
            measure.BYTES,
            measure.PAGE_FAULTS,
            measure.BLOCKED.name,
            measure.LOST.name,
            measure.LOST_STEPS.name,
        ),
        *(
            measure.STEPS.name,
            measure.STEP_MEDIAN.name,
            measure.STEP_P99.name,
            measure.STEP_MAX.name,
            measure.SAVE_SHARE.name,
        ),
        *(PEAK, READ, WRITTEN, *STAGE_METRICS),
    }
)
"""Metrics beside the times that reports show."""

_ORBAX_TOTALS = ("5_inventory/save_total_gb", "5_inventory/load_total_gb")
_GIB = 2**30
RESIDENT = measure.RESIDENT_SHARE.name
NOTHING_MEASURED: Final = (
    "its repeats passed without one sample, so that nothing is known of it: wrap the operation in "
    '`with metrics.measure("save"):`'
)


def summarize(
    repeats: Iterable[records.Repeat], table: SummaryTable | None = None
) -> model.RunSummary:
    """Aggregates the repeats of a run that count.

    Args:
        repeats: The repeats of a run, those of one series next to each other, warm-ups too.
        table: Takes every metric as a line; the summary then keeps those that reports show. None
            keeps all of them.
    """
    metrics: list[model.MetricSummary] = []
    operations: list[model.OperationSummary] = []
    points: list[model.PointStatus] = []
    hosts = HostFinder()
    overlaps = records.OverlapFinder()
    for series, found in itertools.groupby(repeats, key=lambda repeat: repeat.series):
        every = list(found)
        for repeat in every:
            overlaps.add(repeat)
        measured = [repeat for repeat in every if not repeat.warmup]
        if not measured:
            continue
        for record in (record for repeat in measured for record in repeat.records.values()):
            hosts.add(record)
        point = _Point(series, measured)
        metrics += point.metrics(table)
        operations += point.operations()
        traced = sum(repeat.traced for repeat in every)
        points.append(dataclasses.replace(point.status(), traced=traced))
    not_alone = overlaps.found()
    points = [
        dataclasses.replace(point, not_alone=not_alone.get(point.point_id, 0)) for point in points
    ]
    return model.RunSummary(
        metrics=metrics, operations=operations, points=points, hosts=hosts.found()
    )


class _Point:
    """Values of the measured repeats of one series."""

    def __init__(self, series: records.Series, repeats: Sequence[records.Repeat]) -> None:
        self._series = series
        self._repeats = repeats
        self._counted = [repeat for repeat in repeats if repeat.counts]
        self._hosts = len(self._counted[-1].records) if self._counted else 0
        self._values: dict[_Key, list[float]] = {}
        self._units: dict[_Key, str] = {}
        self._slowest: dict[str, list[float]] = {}
        self._gib: dict[str, list[float]] = {}
        self._orbax_gib: dict[str, list[float]] = {}
        for repeat in self._counted:
            hosts = list(repeat.records.values())
            for record in hosts:
                for sample in record.samples:
                    key = sample.operation, sample.metric
                    self._values.setdefault(key, []).append(sample.value)
                    self._units[key] = sample.unit
            for (operation, _), value in repeat.seconds().items():
                self._slowest.setdefault(operation, []).append(value)
            # Every host states the bytes of all: they are counted once.
            for sample in hosts[0].samples:
                if sample.metric == measure.BYTES:
                    self._gib.setdefault(sample.operation, []).append(sample.value / _GIB)
                elif sample.metric in _ORBAX_TOTALS:
                    self._orbax_gib.setdefault(sample.operation, []).append(sample.value)

    def metrics(self, table: SummaryTable | None) -> list[model.MetricSummary]:
        """Returns every metric, over all repeats and hosts; with a table only what reports show."""
        found = [self._summary(key, values) for key, values in self._values.items()]
        if table is None:
            return found
        table.write(found)
        return [metric for metric in found if metric.metric in SHOWN]

    def operations(self) -> list[model.OperationSummary]:
        """Returns every operation, by its slowest hosts."""
        stragglers = stragglers_of(list(repeat.records.values()) for repeat in self._counted)
        store, conditions = records.store_flags(self._counted), self._series.point.conditions
        caches = cache_states(self._counted)
        return [
            model.OperationSummary(
                time=self._summary((operation, measure.TIME), seconds),
                throughput=self._throughput(operation, seconds),
                straggler=stragglers.get(operation),
                flag=cache_flag(conditions, operation, self._values.get((operation, RESIDENT), ())),
                store=store[operation].sentence if operation in store else "",
                cache=caches.get(operation, ""),
                seconds=tuple(seconds),
            )
            for operation, seconds in self._slowest.items()
        ]

    def status(self) -> model.PointStatus:
        """Returns how the repeats ended."""
        point = self._series.point
        ended = collections.Counter(repeat.status for repeat in self._repeats)
        reasons = (repeat.reason for repeat in self._repeats if not repeat.counts)
        loads = [operation for operation, metric in self._values if metric == RESIDENT]
        measured = any(metric != RESIDENT for _, metric in self._values)
        flag = uncontrolled_flag(point.conditions, loads) if measured else NOTHING_MEASURED
        failures: dict[str, list[tuple[int, records.ErrorInfo]]] = {}
        for repeat in self._repeats:
            if repeat.status == "failed" and repeat.error is not None:
                failures.setdefault(repeat.error.said, []).append((repeat.index, repeat.error))
        retried = [repeat.first_reason for repeat in self._counted if repeat.first_failed]
        states = [next(iter(repeat.records.values())).state for repeat in self._counted]
        return model.PointStatus(
            point_id=self._series.id,
            point=self._series.name,
            reason=next(filter(None, reasons), ""),
            verified=records.weakest({repeat.verified for repeat in self._counted}),
            effects=strongest_effects(
                effect
                for repeat in self._repeats
                for record in repeat.records.values()
                for effect in record.effects
            ),
            flag=flag if self._counted else None,
            failures=tuple(
                model.Failure(error=found[0][1], repeats=tuple(index for index, _ in found))
                for found in failures.values()
            ),
            measured=measured,
            retried=len(retried),
            retried_for=next(iter(retried), ""),
            checkpoint=point.checkpoint.label,
            checkpoint_bytes=next((s.num_bytes for s in reversed(states) if s is not None), None),
            passed=ended["passed"],
            failed=ended["failed"],
            skipped=ended["skipped"],
        )

    def _throughput(self, operation: str, seconds: list[float]) -> float | None:
        gib = (self._gib or self._orbax_gib).get(operation, [])
        if len(gib) != len(seconds) or sum(seconds) == 0:
            return None
        return sum(gib) / sum(seconds)

    def _summary(self, key: tuple[str, str], found: list[float]) -> model.MetricSummary:
        values = sorted(found)
        return model.MetricSummary(
            point_id=self._series.id,
            point=self._series.name,
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


def cache_flag(conditions: Conditions, operation: str, shares: Sequence[float]) -> str | None:
    """Returns the fault of the page cache that an operation met, or None.

    Args:
        conditions: What the suite asks of the page cache.
        operation: The load, for the message.
        shares: Share of the checkpoint that was resident before each load, from 0 to 1.
    """
    if not shares:
        return None
    if conditions.cache == "cold" and max(shares) > measure.TOLERATED_SHARE:
        return (
            f"{operation} claims to be cold, but up to {pages.percent(max(shares))} of the "
            "checkpoint was in the page cache: do not read it as a cold load"
        )
    if conditions.cache == "warm" and min(shares) < 1 - measure.TOLERATED_SHARE:
        return (
            f"{operation} claims to be warm, but only {pages.percent(min(shares))} of the "
            "checkpoint was in the page cache: there may be too little memory for it"
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


class SummaryTable:
    """`summary.csv`: one line per point, operation and metric."""

    def __init__(self, file: IO[bytes]) -> None:
        """Begins the table in `file`, which stays open."""
        self._text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        fields = [field.name for field in dataclasses.fields(model.MetricSummary)]
        self._values = operator.attrgetter(*fields)
        self._writer = csv.writer(self._text, lineterminator="\n")
        self._writer.writerow(fields)

    def write(self, metrics: Iterable[model.MetricSummary]) -> None:
        """Adds lines."""
        # `asdict` would copy every value, which takes longer than all else of a large table.
        self._writer.writerows(map(_safe, map(self._values, metrics)))

    def end(self) -> None:
        """Returns the file to the caller that opened it."""
        self._text.detach()


def _safe(row: Iterable[object]) -> list[object]:
    """Returns a row whose texts are no formulas to a spreadsheet, nor obeyed by a terminal."""
    return [_text(value) if isinstance(value, str) else value for value in row]


@functools.lru_cache(maxsize=1024)  # every point has the same metrics and units
def _text(value: str) -> str:
    text = presentable(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\n")
"""Begins of formulas to a spreadsheet; an apostrophe before one makes it text."""
