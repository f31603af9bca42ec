"""Tables of a run's operations, and lines on its points."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from orbax_bench_core import measure, pages
from orbax_bench_core.analysis.names import heading
from orbax_bench_core.analysis.summary.aggregate import PEAK, READ, WRITTEN
from orbax_bench_core.analysis.summary.hosts import Straggler
from orbax_bench_core.analysis.summary.model import OperationSummary, RunSummary

_MEASURED: Final = ("memory", "I/O")
_MIB: Final = 2**20
_DIRECTIONS: Final = {READ: "r", WRITTEN: "w"}
_MEASURED_LEGEND: Final = (
    "Memory: the peak of the process during the operation; I/O: what it wrote to storage (w) or "
    "read from there (r), whichever is more; medians over repeats and hosts."
)
LEGEND: Final = (
    "Median, interquartile spread over the median, fastest and slowest of n repeats, each on its "
    "slowest host; GiB/s is all bytes over all seconds."
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExtraColumns:
    """Columns that another package adds to the tables of operations."""

    headings: tuple[str, ...] = ()  # their headings; empty when there is nothing to add
    # their cells by point id and operation; dashes stand where there are none
    cells: Mapping[tuple[str, str], tuple[str, ...]] = dataclasses.field(default_factory=dict)
    # a sentence on an operation, by point id and operation
    notes: Mapping[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    legend: str = ""  # what the columns mean, for below a table


NO_EXTRA: Final = ExtraColumns()


def medians_of(summary: RunSummary) -> dict[tuple[str, str], dict[str, float]]:
    """Returns the median of each metric, by point id and operation."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for metric in summary.metrics:
        found.setdefault((metric.point_id, metric.operation), {})[metric.metric] = metric.median
    return found


def with_measured(summary: RunSummary, extra: ExtraColumns) -> ExtraColumns:
    """Returns columns with memory and I/O of the operations before them, where these are known."""
    medians = {
        key: found
        for key, found in medians_of(summary).items()
        if not found.keys().isdisjoint((PEAK, READ, WRITTEN))
    }
    if not medians:
        return extra
    nothing = ("–",) * len(extra.headings)
    cells = {
        key: (*_measured(medians.get(key, {})), *extra.cells.get(key, nothing))
        for key in {**medians, **extra.cells}
    }
    legend = " ".join(filter(None, [_MEASURED_LEGEND, extra.legend]))
    return dataclasses.replace(
        extra, headings=(*_MEASURED, *extra.headings), cells=cells, legend=legend
    )


def _measured(medians: Mapping[str, float]) -> tuple[str, str]:
    """Returns the cells of memory and I/O."""
    memory = pages.num_bytes(medians[PEAK] * _MIB) if PEAK in medians else "–"
    moved = [(medians[each], mark) for each, mark in _DIRECTIONS.items() if each in medians]
    if not moved:
        return memory, "–"
    most, mark = max(moved)
    return memory, f"{pages.num_bytes(most)} {mark}" if most else pages.num_bytes(0)


def operations_table(operations: Sequence[OperationSummary]) -> pages.Table:
    """Returns the operations of all points, each with its time and its rate."""
    rows = []
    for operation in operations:
        time = operation.time
        cells = (
            labelled(operation),
            str(time.n),
            pages.seconds(time.median),
            pages.percent(time.spread),
            pages.seconds(time.minimum),
            pages.seconds(time.maximum),
            rate(operation),
        )
        rows.append(pages.Row(cells, _point(operation)))
    numbers = ("n", "median", "spread", "min", "max", "GiB/s")
    columns = pages.columns("operation", *(f"{heading}#" for heading in numbers))
    return pages.Table(columns, tuple(rows))


def extra_table(operations: Sequence[OperationSummary], extra: ExtraColumns) -> pages.Table:
    """Returns the columns of other packages, for the operations that have any."""
    rows = (
        pages.Row((labelled(operation), *extra.cells[key]), _point(operation))
        for operation in operations
        if (key := (operation.time.point_id, operation.time.operation)) in extra.cells
    )
    columns = pages.columns("operation", *(f"{heading}#" for heading in extra.headings))
    return pages.Table(columns, tuple(rows))


def _point(operation: OperationSummary) -> str:
    return f"{pages.code(operation.time.point)} {operation.time.point_id}"


def labelled(operation: OperationSummary) -> str:
    """Returns the name of an operation and, of a load, the state of the page cache."""
    cache, name = operation.cache, heading(operation.time.operation)
    return f"{name} ({cache})" if cache else name


def rate(operation: OperationSummary) -> str:
    """Returns the throughput of an operation in GiB/s."""
    return "–" if operation.throughput is None else pages.digits(operation.throughput)


def faults(summary: RunSummary) -> Iterator[str]:
    """Yields why operations are not what they claim to be, a sentence each."""
    for operation in summary.operations:
        about = f"{operation.time.point}: "
        if operation.flag:
            yield about + operation.flag
        if operation.store:
            yield f"{about}{operation.time.operation}: {operation.store}"


def operation_notes(summary: RunSummary, extra: ExtraColumns) -> Iterator[str]:
    """Yields what else there is to say on operations, a sentence each."""
    medians = medians_of(summary)
    for operation in summary.operations:
        time = operation.time
        key = (time.point_id, time.operation)
        said = (
            extra.notes.get(key),
            _training_cost(medians.get(key, {})),
            operation.straggler and straggler_sentence(operation.straggler),
        )
        yield from (f"{time.point}, {time.operation}: {text}" for text in said if text)


def _training_cost(found: Mapping[str, float]) -> str:
    """Returns the cost of saves to the training that went on, or its slowest steps."""
    if measure.LOST.name in found:
        return (
            f"cost the training {pages.seconds(found[measure.LOST.name])} "
            f"({pages.digits(found[measure.LOST_STEPS.name])} steps), of which it stood still for "
            f"{pages.seconds(found[measure.BLOCKED.name])}"
        )
    if measure.STEP_P99.name in found:
        return (
            f"of {found[measure.STEPS.name]:.0f} steps, the median took "
            f"{pages.seconds(found[measure.STEP_MEDIAN.name])}, the 99th percentile "
            f"{pages.seconds(found[measure.STEP_P99.name])}, the longest "
            f"{pages.seconds(found[measure.STEP_MAX.name])}; "
            f"{pages.percent(found[measure.SAVE_SHARE.name])} of their time went beyond the median"
        )
    return ""


def straggler_sentence(straggler: Straggler) -> str:
    """Returns which host the others waited for in an operation, and in which stage."""
    said = (
        f"host {straggler.host} was slowest in {straggler.slowest} of {straggler.repeats} repeats; "
        f"it took {pages.seconds(straggler.excess_s)} more than the median of the others"
    )
    if straggler.stage is None or straggler.stage_excess_s <= 0:
        return said
    share = min(1.0, straggler.stage_excess_s / straggler.excess_s)
    return (
        f"{said}, {pages.percent(share)} of it in {straggler.stage} "
        f"(+{pages.seconds(straggler.stage_excess_s)})"
    )


def metrics_table(summary: RunSummary) -> pages.Table:
    """Returns every metric of a summary, by point and operation."""
    rows = (
        pages.Row(
            (
                metric.metric,
                *map(pages.digits, (metric.median, metric.minimum, metric.maximum)),
                metric.unit,
            ),
            f"{metric.operation} of {pages.code(metric.point)} {metric.point_id}",
        )
        for metric in summary.metrics
    )
    return pages.Table(pages.columns("metric`", "median#", "min#", "max#", "unit"), tuple(rows))
