"""The TensorBoard run that sums up one point: aggregates, cards, its row of the HParams tab."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orbax_bench_core.records.run_directory import Repeat, RunInfo
from orbax_bench_core.report import cards
from orbax_bench_core.report.tensorboard import hparams
from orbax_bench_core.report.tensorboard.glance import glance_card
from orbax_bench_core.report.tensorboard.host_log import record_end
from orbax_bench_core.report.tensorboard.log import Log, Scalar
from orbax_bench_core.report.tensorboard.operations import THROUGHPUT, Operation, operations
from orbax_bench_core.report.tensorboard.series import collect
from orbax_bench_core.sweep.point import SweepPoint

_HOW_TO_READ = (
    "Scalars of this run end in `_median`, of the slowest host, over the repeats; or in `_mean`, "
    "`_min`, `_max`, `_p50` and `_p99`, over all repeats and hosts. "
    f"`{THROUGHPUT}_mean` is all bytes over all seconds. "
    "Only repeats that passed on every host count."
)


def point_log(
    point: SweepPoint,
    info: RunInfo,
    repeats: Mapping[int, Repeat],
    row: Mapping[str, hparams.Value],
) -> tuple[Log, list[Operation]]:
    """Returns the log, and the operations that it tells of.

    Args:
        point: The sweep point.
        info: Its run.
        repeats: Its measured repeats by index, one or more, each with a record.
        row: Its hyperparameters.
    """
    records = [record for repeat in repeats.values() for record in repeat.records.values()]
    ended = max(map(record_end, records))
    series = collect(repeats.values())
    found = operations(series)
    log = Log(ended)
    log.scalars(
        Scalar(f"{one.tag}_{suffix}", value)
        for one in series.values()
        for suffix, value in one.aggregates().items()
    )
    log.scalars(
        Scalar(_throughput_tag(operation), operation.throughput)
        for operation in found
        if operation.throughput is not None
    )
    log.text("configuration", cards.configuration_card(point, info))
    log.text("run_summary", f"{cards.run_summary_card(point, info, repeats)}\n\n{_HOW_TO_READ}")
    inventory = next((r.inventory for r in reversed(records) if r.inventory is not None), None)
    if inventory is not None:
        log.text("inventory", cards.inventory_card(inventory))
    for operation in found:
        log.text(f"at_a_glance/{operation.name}", glance_card(operation, inventory))
    began = min(record.started_at.timestamp() for record in records)
    passed = all(repeat.status == "passed" for repeat in repeats.values())
    # Rows of one name would become one row, and only the id is sure to differ.
    group = f"{point.name} {point.id[:6]}"
    log.hparams(hparams.SESSION_START_TAG, hparams.session_start(group, began, row))
    log.hparams(hparams.SESSION_END_TAG, hparams.session_end(ended, passed=passed))
    return log, found


def metric_columns(found: Iterable[Operation]) -> list[hparams.Metric]:
    """Returns the metric columns of the HParams tab: time and throughput of each operation.

    Operations that move bytes come first, because the tab shows but the first five columns unless
    asked for more.

    Args:
        found: The operations of all points; those of one name share their columns.
    """
    columns: dict[str, list[hparams.Metric]] = {}
    for operation in sorted(found, key=lambda one: one.throughput is None):
        name = operation.name
        own = [hparams.Metric(f"{operation.time.tag}_median", f"{name} [s]")]
        if operation.throughput is not None:
            own.append(hparams.Metric(_throughput_tag(operation), f"{name} [GiB/s]"))
        columns.setdefault(name, own)
    return [column for own in columns.values() for column in own]


def _throughput_tag(operation: Operation) -> str:
    # The mean in the sense of all bytes over all seconds, which no mean of rates is.
    return f"{operation.name}_{THROUGHPUT}_mean"
