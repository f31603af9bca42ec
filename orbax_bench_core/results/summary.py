"""What a run found, per point, operation and metric."""

from __future__ import annotations

import csv
import dataclasses
import io
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from orbax_bench_core.results.record import Record

TIME = "0_basics/time_s"
BYTES = "5_inventory/operation_bytes"
_GIB = 2**30
_ORBAX_TOTALS = ("5_inventory/save_total_gb", "5_inventory/load_total_gb")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary:
    """One metric of one operation of one point, over its measured repeats.

    Attributes:
        point_id: Id of the sweep point.
        point: Name of the sweep point.
        operation: Name of the operation.
        metric: Name of the metric.
        unit: Unit of all values here.
        n: Number of samples.
        median: Median.
        q25: Lower quartile.
        q75: Upper quartile.
        minimum: Smallest sample.
        maximum: Largest sample.
    """

    point_id: str
    point: str
    operation: str
    metric: str
    unit: str
    n: int
    median: float
    q25: float
    q75: float
    minimum: float
    maximum: float

    @property
    def spread(self) -> float | None:
        """Interquartile range over the median, a ratio; None when it says nothing."""
        if self.n < 2 or self.median == 0:
            return None
        return (self.q75 - self.q25) / abs(self.median)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OperationSummary:
    """One operation of one point, over its measured repeats.

    Attributes:
        time: Seconds that it took.
        throughput: All bytes over all seconds, in GiB/s, never a mean of rates. The bytes are those
            that the benchmark states or, where it states none at all, Orbax's own totals; None
            without either.
    """

    time: MetricSummary
    throughput: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PointStatus:
    """How the repeats of one point ended.

    Attributes:
        point_id: Id of the sweep point.
        point: Name of the sweep point.
        passed: Number of measured repeats that passed.
        failed: Number that failed.
        skipped: Number that were skipped.
        reason: Why the first one failed or was skipped; empty when all passed.
    """

    point_id: str
    point: str
    passed: int
    failed: int
    skipped: int
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run found.

    Attributes:
        metrics: One entry per point, operation and metric.
        operations: One entry per point and operation.
        points: How each point ended.
    """

    metrics: Sequence[MetricSummary]
    operations: Sequence[OperationSummary]
    points: Sequence[PointStatus]


_Key = tuple[str, str, str]


def summarize(records: Iterable[Record]) -> RunSummary:
    """Aggregates the measured repeats of a run; warm-ups and failed repeats stay out.

    Args:
        records: Records in the order in which points are to appear.
    """
    values: dict[_Key, list[float]] = {}
    units: dict[_Key, str] = {}
    names: dict[str, str] = {}
    endings: dict[str, list[Record]] = {}
    for record in records:
        if record.warmup:
            continue
        names[record.point_id] = record.point_name
        endings.setdefault(record.point_id, []).append(
            record.model_copy(update={"samples": (), "provenance": {}})
        )
        if record.status != "passed":
            continue
        for sample in record.samples:
            key = (record.point_id, sample.operation, sample.metric)
            values.setdefault(key, []).append(sample.value)
            units[key] = sample.unit
    metrics = [
        _metric_summary(key, names[key[0]], units[key], sorted(found))
        for key, found in values.items()
    ]
    operations = [
        OperationSummary(
            time=metric,
            throughput=_throughput(values, metric.point_id, metric.operation),
        )
        for metric in metrics
        if metric.metric == TIME
    ]
    points = [_point_status(found) for found in endings.values()]
    return RunSummary(metrics=metrics, operations=operations, points=points)


def to_csv(summary: RunSummary) -> bytes:
    """Returns `summary.csv`: one line per point, operation and metric."""
    file = io.StringIO(newline="")
    fields = [field.name for field in dataclasses.fields(MetricSummary)]
    writer = csv.DictWriter(file, fields, lineterminator="\n")
    writer.writeheader()
    for metric in summary.metrics:
        writer.writerow(dataclasses.asdict(metric))
    return file.getvalue().encode()


def _metric_summary(key: _Key, point: str, unit: str, found: list[float]) -> MetricSummary:
    quartiles = statistics.quantiles(found, n=4, method="inclusive") if len(found) > 1 else found
    return MetricSummary(
        point_id=key[0],
        point=point,
        operation=key[1],
        metric=key[2],
        unit=unit,
        n=len(found),
        median=statistics.median(found),
        q25=quartiles[0],
        q75=quartiles[-1],
        minimum=found[0],
        maximum=found[-1],
    )


def _throughput(values: dict[_Key, list[float]], point_id: str, operation: str) -> float | None:
    seconds = values[point_id, operation, TIME]
    gib = _moved_gib(values, point_id, operation)
    if len(gib) != len(seconds) or sum(seconds) == 0:
        return None
    return sum(gib) / sum(seconds)


def _moved_gib(values: dict[_Key, list[float]], point_id: str, operation: str) -> list[float]:
    stated = values.get((point_id, operation, BYTES))
    if stated:
        return [num_bytes / _GIB for num_bytes in stated]
    if any(key[0] == point_id and key[2] == BYTES for key in values):
        return []
    totals = (values.get((point_id, operation, metric), []) for metric in _ORBAX_TOTALS)
    return next(filter(None, totals), [])


def _point_status(records: list[Record]) -> PointStatus:
    counts: dict[Any, int] = {"passed": 0, "failed": 0, "skipped": 0}
    for record in records:
        counts[record.status] += 1
    errors = [record.error for record in records if record.error is not None]
    return PointStatus(
        point_id=records[0].point_id,
        point=records[0].point_name,
        reason=f"{errors[0].type}: {errors[0].message}" if errors else "",
        **counts,
    )
