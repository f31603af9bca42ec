"""Writing of the `tensorboard` folder of a run directory: logs of points and hosts."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import statistics
import struct
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Final

import google_crc32c
from tensorboard.compat.proto import types_pb2
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo

from orbax_bench_core.analysis.summary import short_names
from orbax_bench_core.errors import redacted
from orbax_bench_core.exports.tensorboard import cards, hparams
from orbax_bench_core.exports.tensorboard.cards import THROUGHPUT
from orbax_bench_core.exports.tensorboard.metrics import Metrics, collect, throughput
from orbax_bench_core.files import AnyPath, matching, refuse_links, write_if_changed
from orbax_bench_core.measure import TIME, block_name, lookup
from orbax_bench_core.records import Record, Repeat, Run, Series

SUMMARY: Final = "__summary__"
TIMES: Final = "0_time"
"""Group of the seconds of all operations; TensorBoard sorts groups, so that it is the first."""

_LONGEST = 120
_OURS = "orbax-bench"


class EventFiles:
    """Scalars, HParams and text cards of a run, from the records alone.

    Each point is named by what tells it from the others. It has a run `<name>/host_<h>` with what
    that host measured, a step per repeat, and a run `<name>/__summary__` with aggregates over hosts
    and repeats, cards, and its row of the HParams tab. The same records give the same files; those
    that an earlier call wrote and that no longer belong are removed.
    """

    def __init__(self, run: Run) -> None:
        """Begins the files; the points are added one by one."""
        self._info, self._run = run.info, run.directory.root
        self._root = self._run / "tensorboard"
        refuse_links(self._root, self._run)
        self._created = run.info.created_at.timestamp()
        # TensorBoard wants `tfevents` in the name, and reads files in the order of their time.
        self._name = f"events.out.tfevents.{int(self._created)}.{run.info.run_id}.{_OURS}"
        self._rows, self._folders = hparams.columns(run.series()), run_names(run.series())
        self._moves_bytes: dict[str, bool] = {}
        self._written: set[str] = set()

    def add(self, found: Iterable[Repeat]) -> None:
        """Writes the files of a point, or of the arms of a pair."""
        measured = (repeat for repeat in found if not repeat.warmup)
        for series, of_series in itertools.groupby(measured, key=lambda repeat: repeat.series):
            repeats = sorted(of_series, key=lambda repeat: repeat.index)
            for host in sorted({host for repeat in repeats for host in repeat.records}):
                records = [repeat.records[host] for repeat in repeats if host in repeat.records]
                self._write(f"{self._folders[series.id]}/host_{host}", self._of_host(records))
            self._write(f"{self._folders[series.id]}/{SUMMARY}", self._summary(series, repeats))

    def end(self) -> None:
        """Declares the columns of the HParams tab, and removes what no longer belongs."""
        # The tab shows only five columns at first, and those of operations that move bytes matter.
        columns: dict[str, str] = {}
        for name, moves in sorted(self._moves_bytes.items(), key=lambda item: not item[1]):
            columns[f"{name}_{TIME}_median"] = f"{name} [s]"
            if moves:
                columns[f"{name}_{THROUGHPUT}_mean"] = f"{name} [GiB/s]"
        log = Log(self._created)
        log.hparams(
            experiment=hparams.experiment(self._info.suite_name, self._created, self._rows, columns)
        )
        self._write(SUMMARY, log)
        _remove_others(self._root, self._run, self._written)

    def _write(self, name: str, log: Log) -> None:
        folder = f"{self._root}/{name}"
        refuse_links(folder, self._run)
        write_if_changed(f"{folder}/{self._name}", log.to_bytes())
        self._written.add(f"{folder}/{self._name}")

    def _of_host(self, records: Sequence[Record]) -> Log:
        """Returns every sample of the repeats that passed, and the error of each that did not."""
        log = Log(self._created)
        for record in records:
            step, ended = record.repeat, _end(record)
            if record.status == "passed":
                log.scalars(_scalars(record), step=step, wall_time=ended)
            elif record.error is not None:
                error = record.error
                text = f"**{error.type}**: {error.message}\n\n```\n{error.traceback}\n```"
                tag = "error" if record.status == "failed" else record.status
                log.text(tag, text, step=step, wall_time=ended)
        return log

    def _summary(self, series: Series, repeats: Sequence[Repeat]) -> Log:
        records = [record for repeat in repeats for record in repeat.records.values()]
        # Hosts have clocks of their own, which nobody has compared: the times are those of one.
        first = min(record.host for record in records)
        of_one = [record for record in records if record.host == first]
        began, ended = min(r.started_at.timestamp() for r in of_one), max(map(_end, of_one))
        inventory = next((r.inventory for r in reversed(records) if r.inventory is not None), None)
        metrics = collect(repeats)
        log = Log(ended)
        log.scalars(_aggregates(metrics))
        log.text("configuration", cards.configuration_card(series, self._info))
        log.text("run_summary", cards.run_summary_card(series, self._info, repeats))
        if inventory is not None:
            log.text("inventory", cards.inventory_card(inventory))
        for name in [name for name, metric in metrics if metric == TIME]:
            log.text(f"at_a_glance/{name}", cards.glance_card(name, metrics, inventory))
            moves = throughput(metrics, name) is not None
            self._moves_bytes[name] = moves or self._moves_bytes.get(name, False)
        # Rows of one name would become one row, and only the id is sure to differ.
        group = f"{series.name} {series.id[:6]}"
        passed = all(repeat.status == "passed" for repeat in repeats)
        status = api_pb2.STATUS_SUCCESS if passed else api_pb2.STATUS_FAILURE
        log.hparams(session_start_info=hparams.session_start(group, began, self._rows[series.id]))
        log.hparams(session_end_info=SessionEndInfo(status=status, end_time_secs=ended))
        return log


def run_names(every: Sequence[Series]) -> dict[str, str]:
    """Returns the name of a folder for each series, TensorBoard's name of a run, by its id."""
    found = short_names(every)
    safe = {id_: re.sub(r"[^\w=,.+@\[\] -]", "_", name).strip(" .") for id_, name in found.items()}
    count = Counter(safe.values())
    return {
        id_: name
        if count[name] == 1 and 0 < len(name) <= _LONGEST and name != SUMMARY
        else f"{name[:_LONGEST]} {id_}".strip()
        for id_, name in safe.items()
    }


def _remove_others(root: AnyPath, run: AnyPath, written: Container[str]) -> None:
    for folders in ("*", "*/*"):
        for path in matching(root, f"{folders}/events.out.tfevents.*.{_OURS}"):
            if str(path) not in written:
                # Never delete through a link, and keep folders that hold other files.
                with contextlib.suppress(OSError, ValueError):
                    refuse_links(path.parent, run)
                    path.unlink()
                    path.parent.rmdir()
                    path.parent.parent.rmdir()


def _scalars(record: Record) -> Iterator[Scalar]:
    for sample in record.samples:
        block = block_name(sample.operation, sample.occurrence)
        yield f"{block}_{sample.metric}", sample.value, _description(sample.metric)
        if sample.metric == TIME:
            yield f"{TIMES}/{block}_s", sample.value, ""


@functools.cache
def _description(metric: str) -> str:
    try:
        known = lookup(metric)
    except KeyError:
        return ""
    return f"{known.description} [{known.unit}]" if known.unit else known.description


def _aggregates(metrics: Metrics) -> Iterator[Scalar]:
    for (operation, metric), series in metrics.items():
        for suffix, value in series.aggregates().items():
            yield f"{operation}_{metric}_{suffix}", value, ""
        if metric == TIME:
            median = statistics.median(series.over_hosts())
            said = "Seconds on the slowest host, median over the repeats."
            yield f"{TIMES}/{operation}_s", median, said
            rate = throughput(metrics, operation)
            if rate is not None:
                # The mean in the sense of all bytes over all seconds, which no mean of rates is.
                yield f"{operation}_{THROUGHPUT}_mean", rate, ""


def _end(record: Record) -> float:
    return record.started_at.timestamp() + record.duration_s


Scalar = tuple[str, float, str]
"""Tag, value, and what the tag means, in Markdown; empty for nothing."""


class Log:
    """Events of one run, as a file; all times are of records, so that its bytes can be repeated."""

    def __init__(self, wall_time: float) -> None:
        """Begins a run; the time, in seconds since the epoch, is that of all without their own."""
        self._wall_time = wall_time
        self._described: set[str] = set()
        self._data = bytearray()
        self._add(Event(wall_time=wall_time, file_version="brain.Event:2"))

    def scalars(
        self, values: Iterable[Scalar], *, step: int = 0, wall_time: float | None = None
    ) -> None:
        """Adds scalars of one step; TensorBoard keeps 32 bits of each, about seven digits."""
        event = Event(wall_time=wall_time or self._wall_time, step=step)
        for tag, number, said in values:
            value = self._value(event, tag, "scalars", said)
            # TensorBoard's default loader leaves out scalars of any other type without a word.
            value.tensor.dtype = types_pb2.DT_FLOAT
            value.tensor.float_val.append(number)
        self._add(event)

    def text(
        self, tag: str, markdown: str, *, step: int = 0, wall_time: float | None = None
    ) -> None:
        """Adds a Markdown text."""
        event = Event(wall_time=wall_time or self._wall_time, step=step)
        value = self._value(event, tag, "text")
        value.tensor.dtype = types_pb2.DT_STRING
        value.tensor.string_val.append(redacted(markdown).encode())
        self._add(event)

    def hparams(self, **message: Any) -> None:
        """Adds a message of the HParams tab, which lies in the metadata of an empty tensor."""
        ((kind, _),) = message.items()
        event = Event(wall_time=self._wall_time)
        value = self._value(event, f"_hparams_/{kind}", "hparams")
        value.tensor.dtype = types_pb2.DT_FLOAT
        value.tensor.tensor_shape.dim.add(size=0)
        content = HParamsPluginData(**message).SerializeToString(deterministic=True)
        value.metadata.plugin_data.content = content
        self._add(event)

    def to_bytes(self) -> bytes:
        """Returns the content of the event file."""
        return bytes(self._data)

    def _value(self, event: Any, tag: str, plugin: str, said: str = "") -> Any:
        value = event.summary.value.add(tag=tag)
        value.tensor.tensor_shape.SetInParent()
        if tag not in self._described:  # TensorBoard keeps what the first value of a tag says
            self._described.add(tag)
            value.metadata.plugin_data.plugin_name = plugin
            value.metadata.summary_description = said
        return value

    def _add(self, event: Any) -> None:
        data = event.SerializeToString(deterministic=True)
        length = struct.pack("<Q", len(data))
        self._data += length + _masked_crc(length) + data + _masked_crc(data)


def _masked_crc(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)
