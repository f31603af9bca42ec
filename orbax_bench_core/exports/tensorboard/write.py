"""Writing of the `tensorboard` folder of a run directory: logs of points and hosts."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import statistics
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from orbax_bench_core.analysis.summary import short_names
from orbax_bench_core.exports.tensorboard import cards, hparams
from orbax_bench_core.exports.tensorboard.cards import glance_card
from orbax_bench_core.exports.tensorboard.event_file import Log, Scalar, Tags, packed
from orbax_bench_core.exports.tensorboard.operations import (
    ASKED,
    THROUGHPUT,
    Alike,
    Operation,
    aggregates_of_unit,
    collect,
    operations,
)
from orbax_bench_core.files import matching, refuse_links, write_if_changed
from orbax_bench_core.lineage import content_digest, folder_digest
from orbax_bench_core.measure import TIME, lookup
from orbax_bench_core.records import Columns, Layout, Record, Repeat, Run, RunInfo, Series

if TYPE_CHECKING:
    from etils import epath


SUMMARY = "__summary__"
TIMES = "0_time"
"""Group of the seconds of all operations; TensorBoard sorts groups, so that it is the first."""

_MEDIAN = "Seconds on the slowest host, median over the repeats."
_LONGEST = 120
_OURS = "orbax-bench"

_HOW_TO_READ = (
    "Scalars of this run end in `_median`, of the slowest host, over the repeats; or in `_mean`, "
    "`_min`, `_max`, `_p50` and `_p99`, over all repeats and hosts. "
    f"`{THROUGHPUT}_mean` is all bytes over all seconds. "
    "Only repeats that passed on every host count."
)


class EventFiles:
    """Scalars, HParams and text cards of a run, from the records alone.

    Each point is named by what tells it from the others. It has a run `<name>/host_<h>` with what
    that host measured, a step per repeat, and a run `<name>/__summary__` with aggregates over hosts
    and repeats, cards, and its row of the HParams tab. `__summary__` declares the columns of that
    tab. Warm-ups stay out.

    The same records give the same files under the same names, so this can be repeated at any time.
    Files that an earlier call wrote and that no longer belong are removed; profiler traces stay.

    Attributes:
        digests: Digest of each file that was written or left as it was to be, by path; in the end
            of the folder as well, where that is new.
    """

    def __init__(self, run: Run) -> None:
        """Begins the files; the points are added one by one."""
        self._info, self._run = run.info, run.directory.root
        self._root = self._run / "tensorboard"
        refuse_links(self._root, self._run)
        self._is_new = not self._root.exists()
        self._created = run.info.created_at.timestamp()
        # TensorBoard wants `tfevents` in the name, and reads files in the order of their time.
        self._name = f"events.out.tfevents.{int(self._created)}.{run.info.run_id}.{_OURS}"
        self._rows, self._folders = hparams.columns(run.series()), run_names(run.series())
        self._operations: dict[tuple[str, bool], Operation] = {}
        self.digests: dict[str, str] = {}

    def add(self, found: Iterable[Repeat]) -> None:
        """Writes the files of a point, or of the arms of a pair.

        Args:
            found: All its repeats, arm by arm.
        """
        measured = (repeat for repeat in found if not repeat.warmup)
        for series, of_series in itertools.groupby(measured, key=lambda repeat: repeat.series):
            repeats = sorted(of_series, key=lambda repeat: repeat.index)
            folder = f"{self._root}/{self._folders[series.id]}"
            for host in sorted({host for repeat in repeats for host in repeat.records}):
                records = [
                    (repeat.records[host], repeat.columns[host])
                    for repeat in repeats
                    if host in repeat.records
                ]
                self._write(f"{folder}/host_{host}", host_log(records, self._created))
            log, operations = series_log(series, self._info, repeats, self._rows[series.id])
            self._write(f"{folder}/{SUMMARY}", log)
            for operation in operations:  # one of a kind says what its columns are
                kind = operation.name, operation.throughput is None
                self._operations.setdefault(kind, operation)

    def end(self) -> None:
        """Declares the columns of the HParams tab, and removes what no longer belongs."""
        top = Log(self._created)
        columns = metric_columns(self._operations.values())
        content = hparams.experiment(self._info.suite_name, self._created, self._rows, columns)
        top.hparams(hparams.EXPERIMENT_TAG, content)
        self._write(f"{self._root}/{SUMMARY}", top)
        if self._is_new:
            files = {path.removeprefix(f"{self._root}/"): it for path, it in self.digests.items()}
            self.digests[str(self._root)] = folder_digest(files)
        else:
            _remove_others(self._root, self._run, self.digests)

    def _write(self, folder: str, log: Log) -> None:
        if not self._is_new:  # nobody else has written in a new one
            refuse_links(folder, self._run)
        path = f"{folder}/{self._name}"
        data = log.to_bytes()
        write_if_changed(path, data)
        self.digests[path] = content_digest(data)


def run_names(every: Sequence[Series]) -> dict[str, str]:
    """Returns the name of each series among TensorBoard's runs, by its id: what tells it apart.

    It is the name of a folder on any file system.
    """
    found = short_names(every)
    safe = {id_: re.sub(r"[^\w=,.+@\[\] -]", "_", name).strip(" .") for id_, name in found.items()}
    count = Counter(safe.values())
    return {
        id_: name
        if count[name] == 1 and 0 < len(name) <= _LONGEST and name != SUMMARY
        else f"{name[:_LONGEST]} {id_}".strip()
        for id_, name in safe.items()
    }


def _remove_others(root: epath.Path, run: epath.Path, written: Container[str]) -> None:
    for folders in ("*", "*/*"):
        for path in matching(root, f"{folders}/events.out.tfevents.*.{_OURS}"):
            if str(path) not in written:
                # What lies behind a link stays, and a folder that holds something else, or is none.
                with contextlib.suppress(OSError, ValueError):
                    refuse_links(path.parent, run)
                    path.unlink()
                    path.parent.rmdir()
                    path.parent.parent.rmdir()


def series_log(
    series: Series,
    info: RunInfo,
    repeats: Sequence[Repeat],
    row: Mapping[str, hparams.Value],
) -> tuple[Log, list[Operation]]:
    """Returns the log, and the operations that it tells of.

    Args:
        series: What was measured.
        info: Its run.
        repeats: Its measured repeats in order, one or more, each with a record.
        row: Its hyperparameters.
    """
    records = [record for repeat in repeats for record in repeat.records.values()]
    # Hosts have clocks of their own, which nobody has compared: the times are those of one.
    first = min(record.host for record in records)
    of_one = [record for record in records if record.host == first]
    ended = max(map(record_end, of_one))
    alike = Alike.of([repeat for repeat in repeats if repeat.counts])
    found = operations(collect(repeats) if alike is None else alike.series(ASKED))
    log = Log(ended)
    log.scalars(
        Scalar(f"{TIMES}/{operation.name}_s", statistics.median(operation.seconds), _MEDIAN)
        for operation in found
    )
    _add_aggregates(log, repeats, alike)
    log.scalars(
        Scalar(_throughput_tag(operation), operation.throughput)
        for operation in found
        if operation.throughput is not None
    )
    log.text("configuration", cards.configuration_card(series, info))
    log.text("run_summary", f"{cards.run_summary_card(series, info, repeats)}\n\n{_HOW_TO_READ}")
    inventory = next((r.inventory for r in reversed(records) if r.inventory is not None), None)
    if inventory is not None:
        log.text("inventory", cards.inventory_card(inventory))
    for operation in found:
        log.text(f"at_a_glance/{operation.name}", glance_card(operation, inventory))
    began = min(record.started_at.timestamp() for record in of_one)
    passed = all(repeat.status == "passed" for repeat in repeats)
    # Rows of one name would become one row, and only the id is sure to differ.
    group = f"{series.name} {series.id[:6]}"
    log.hparams(hparams.SESSION_START_TAG, hparams.session_start(group, began, row))
    log.hparams(hparams.SESSION_END_TAG, hparams.session_end(ended, passed=passed))
    return log, found


def _add_aggregates(log: Log, repeats: Sequence[Repeat], alike: Alike | None) -> None:
    tags = None if alike is None else _aggregate_tags(alike.layout)
    if alike is not None and tags is not None and log.takes(tags):
        log.row(tags, packed(alike.aggregates()))
        return
    log.scalars(
        Scalar(f"{metric.tag}_{suffix}", value)
        for metric in collect(repeats).values()
        for suffix, value in metric.aggregates().items()
    )


@functools.lru_cache(maxsize=256)
def _aggregate_tags(layout: Layout) -> Tags | None:
    """Returns the tags of the aggregates of a layout; None where two are the same."""
    names = [
        f"{block}_{metric}_{suffix}"
        for (block, metric), unit in zip(layout.keys, layout.units, strict=True)
        for suffix in aggregates_of_unit(unit)
    ]
    return Tags.of((name, "") for name in names)


def metric_columns(found: Iterable[Operation]) -> list[hparams.Metric]:
    """Returns the metric columns of the HParams tab: time and throughput of each operation.

    Operations of one name share their columns. Those that move bytes come first, because the tab
    shows but the first five columns unless asked for more.
    """
    columns: dict[str, list[hparams.Metric]] = {}
    for operation in sorted(found, key=lambda operation: operation.throughput is None):
        name = operation.name
        own = [hparams.Metric(f"{operation.time.tag}_median", f"{name} [s]")]
        if operation.throughput is not None:
            own.append(hparams.Metric(_throughput_tag(operation), f"{name} [GiB/s]"))
        columns.setdefault(name, own)
    return [column for own in columns.values() for column in own]


def _throughput_tag(operation: Operation) -> str:
    # The mean in the sense of all bytes over all seconds, which no mean of rates is.
    return f"{operation.name}_{THROUGHPUT}_mean"


def host_log(records: Sequence[tuple[Record, Columns]], created: float) -> Log:
    """Returns every sample of the repeats that passed, and the error of each that did not.

    Args:
        records: The records of one host for the measured repeats of one point, in order, each with
            its samples by column.
        created: When the run began, in seconds since the epoch.
    """
    import numpy as np

    log = Log(created)
    # Whoever has a layout at all has it in nearly all repeats: its values are packed together.
    of_layout: dict[Layout, list[list[float]]] = {}
    for record, (layout, found) in records:
        if record.status == "passed":
            of_layout.setdefault(layout, []).append(found)
    rows = {layout: iter(packed(np.array(found))) for layout, found in of_layout.items()}
    for record, (layout, found) in records:
        if record.status == "passed":
            values, step, end = next(rows[layout]), record.repeat, record_end(record)
            for scalars in _host_scalars(layout):
                if scalars.tags is not None and log.takes(scalars.tags):
                    own = values if scalars.whole else values[scalars.places]
                    log.row(scalars.tags, own, step=step, wall_time=end)
                    continue
                own_values = [found[place] for place in scalars.places]
                each = zip(scalars.described, own_values, strict=True)
                every = (Scalar(tag, value, said) for (tag, said), value in each)
                log.scalars(every, step=step, wall_time=end)
        elif record.error is not None:
            tag = "error" if record.status == "failed" else record.status
            error = record.error
            text = f"**{error.type}**: {error.message}\n\n```\n{error.traceback}\n```"
            log.text(tag, text, step=record.repeat, wall_time=record_end(record))
    return log


def record_end(record: Record) -> float:
    """Returns when a repeat ended, in seconds since the epoch."""
    return record.started_at.timestamp() + record.duration_s


class _Scalars(NamedTuple):
    """Scalars of one step of a host.

    Attributes:
        places: Of which samples they are.
        described: Their tags, each with what it says.
        tags: These; None where two are the same.
        whole: Whether they are all samples, in their order.
    """

    places: list[int]
    described: list[tuple[str, str]]
    tags: Tags | None
    whole: bool


@functools.lru_cache(maxsize=256)
def _host_scalars(layout: Layout) -> tuple[_Scalars, _Scalars]:
    """Returns the scalars of a repeat: the seconds of its operations, and all that it measured."""
    times = list(layout.places(TIME))
    seconds = [(f"{TIMES}/{layout.blocks[place]}_s", "") for place in times]
    every = [(f"{block}_{metric}", _description(metric)) for block, metric in layout.keys]
    return (
        _Scalars(times, seconds, Tags.of(seconds), whole=False),
        _Scalars(list(range(len(every))), every, Tags.of(every), whole=True),
    )


@functools.cache
def _description(metric: str) -> str:
    """Returns what TensorBoard says of a metric."""
    try:
        known = lookup(metric)
    except KeyError:
        return ""
    return f"{known.description} [{known.unit}]" if known.unit else known.description
