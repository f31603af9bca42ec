"""The read model of a run: its series, repeats, times and samples."""

from __future__ import annotations

import collections
import html
import itertools
import json
import statistics
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from orbax_bench_core.records.paired import PairedTimes
from orbax_bench_core.records.reading import PointRecords
from orbax_bench_core.records.record import Record
from orbax_bench_core.records.repeats import OperationTimes, Repeat, Series
from orbax_bench_core.records.run_directory import RunDirectory
from orbax_bench_core.records.samples import samples_table
from orbax_bench_core.sweep import Pair, SweepPoint, short_name

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Run:
    """One run, as its records tell it.

    Attributes:
        directory: Where it lies.
        info: What its `run.json` says.
    """

    def __init__(self, directory: RunDirectory) -> None:
        """Reads `run.json`; records are read when they are asked for.

        Raises:
            UserError: There is no run here, or one of another schema version.
        """
        self.directory = directory
        self.info = directory.read_info()

    def series(self) -> tuple[Series, ...]:
        """Returns every point that the run measures, each arm of a pair included."""
        return tuple(
            series for entry in self.info.expansion.points for series in Series.all_of(entry)
        )

    def repeats(self, series: Series | None = None, *, warmups: bool = False) -> Iterator[Repeat]:
        """Yields the repeats that have a record, series by series.

        Args:
            series: The one to read; None reads all.
            warmups: Whether warm-ups are among them, before the others of their series.
        """
        entries = self.info.expansion.points if series is None else (series.entry,)
        for entry in entries:
            for repeat in self.directory.read_point(entry).by_arm:
                if (series is None or series.arm == repeat.series.arm) and (
                    warmups or not repeat.warmup
                ):
                    yield repeat

    def points(self) -> Iterator[PointRecords]:
        """Yields all that is recorded of each point or pair, read one after the other.

        Each has its `entry`, `records`, `repeats`, and as `left_out` the files that are no records.

        Raises:
            UserError: A record cannot be read.
        """
        entries = self.info.expansion.points
        self.directory.note_unknown_points({entry.id for entry in entries})
        for entry in entries:
            yield self.directory.read_point(entry)

    def records(self) -> Iterator[Record]:
        """Yields every record, warm-ups included, in the order of `repeats`."""
        for repeat in self.repeats(warmups=True):
            yield from repeat.records.values()

    def strays(self) -> tuple[str, ...]:
        """Returns the files among the records that are no records of this run, a line each.

        All that reads a run leaves them out: copies, records of other runs, torn and other files.
        """
        collections.deque(self.points(), maxlen=0)
        return self.directory.strays

    def operation_times(self, series: Series | None = None) -> dict[str, OperationTimes]:
        """Returns the seconds of every operation, by id of the series.

        Args:
            series: The one to read; None reads all.
        """
        return {
            id_: OperationTimes.of(repeats)
            for id_, repeats in itertools.groupby(
                self.repeats(series), key=lambda repeat: repeat.series.id
            )
        }

    def paired(self, pair: Pair) -> PairedTimes:
        """Returns the complete blocks of a pair, as arrays."""
        return PairedTimes.of(self.directory.read_point(pair).repeats)

    def table(self) -> pyarrow.Table:
        """Returns all samples, warm-ups included, with the columns of `samples.parquet`."""
        return samples_table(record for point in self.points() for record in point.records)

    def samples(self) -> pandas.DataFrame:
        """Returns one row per sample, with the columns of `samples.parquet` and one per option.

        Of failed repeats too: `status` says which. Options stand under `option.<name>`.
        """
        frame = self.table().to_pandas()
        options = [json.loads(text) for text in frame["options"]]
        for name in sorted({name for given in options for name in given}):
            frame[f"option.{name}"] = [given.get(name) for given in options]
        return frame

    def times(self) -> pandas.DataFrame:
        """Returns one row per series, repeat that counts, and operation.

        The column `seconds` is the time on the slowest host, summed over the occurrences of the
        operation; options stand under `option.<name>`.
        """
        import pandas

        rows = []
        for repeat in self.repeats():
            if repeat.counts:
                common = _columns(repeat)
                for operation, (seconds,) in OperationTimes.of([repeat]).per_repeat().items():
                    rows.append({**common, "operation": operation, "seconds": seconds})
        return pandas.DataFrame(rows)

    def medians(self) -> pandas.DataFrame:
        """Returns one row per series: what tells it from the others, and its median seconds.

        There is a column per option that differs, by its name, and for checkpoint, mesh,
        environment and arm where they do; `repeats` and `failed`; and a column per operation,
        `<operation> [s]`, which is NaN where a series has none.
        """
        import pandas

        series = self.series()
        what = [_what(each.point) | {"arm": each.arm or ""} for each in series]
        names = dict.fromkeys(name for each in what for name in each)
        differ = [name for name in names if len({repr(each.get(name)) for each in what}) > 1]
        rows = []
        for each, named in zip(series, what, strict=True):
            repeats = list(self.repeats(each))
            counted = [repeat for repeat in repeats if repeat.counts]
            times = OperationTimes.of(counted).per_repeat() if counted else {}
            rows.append(
                {name: named.get(name) for name in differ}
                | {"repeats": len(counted)}
                | {"failed": sum(repeat.status == "failed" for repeat in repeats)}
                | {f"{name} [s]": statistics.median(found) for name, found in times.items()}
            )
        return pandas.DataFrame(rows)

    def _repr_html_(self) -> str:
        """Returns the run as a notebook shows it."""
        head = f"<b>{html.escape(self.info.suite_name)}</b>: median seconds per operation"
        place = f"<small>{html.escape(str(self.directory.root))}</small>"
        table = self.medians().to_html(index=False, na_rep="–", float_format="{:.4g}".format)
        return f"<p>{head}</p>{table}<p>{place}</p>"


def load_run(directory: str) -> Run:
    """Reads a run directory, local or gs://.

    Args:
        directory: What `--output-directory` was.

    Raises:
        UserError: There is no run there, or one that this version cannot read.
    """
    return Run(RunDirectory(directory))


def _what(point: SweepPoint) -> dict[str, object]:
    """Returns the subject of a point, by the names that people give it."""
    return {
        "benchmark": short_name(point.benchmark),
        **point.options,
        "checkpoint": point.checkpoint.label,
        "mesh": "" if point.mesh is None else point.mesh.label,
        "environment": "" if point.environment is None else point.environment.name,
        "processes": point.processes,
        "storage": point.storage or "",
        "cache": point.conditions.cache,
        "host_memory": point.conditions.host_memory,
    }


def _columns(repeat: Repeat) -> Mapping[str, object]:
    point: SweepPoint = repeat.series.point
    return {
        "series_id": repeat.series.id,
        "series": repeat.series.name,
        "benchmark": point.benchmark,
        "checkpoint": point.checkpoint.label,
        "mesh": "" if point.mesh is None else point.mesh.label,
        "environment": "" if point.environment is None else point.environment.name,
        "arm": repeat.series.arm or "",
        "block": repeat.block,
        "repeat": repeat.index,
        **{f"option.{name}": value for name, value in sorted(point.options.items())},
    }
