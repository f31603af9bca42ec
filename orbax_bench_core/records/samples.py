"""Samples table, `samples.parquet`: all samples of a run, and what else the machine did."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import functools
import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Self

from orbax_bench_core.errors import without_credentials
from orbax_bench_core.measure import RETRIES, Sample, code_of
from orbax_bench_core.records.record import Record, StoreTrouble, Trouble
from orbax_bench_core.records.repeats import Repeat
from orbax_bench_core.records.versions import SCHEMA_VERSION

if TYPE_CHECKING:
    import pyarrow

    from orbax_bench_core.records.repeats import Repeat

COLUMNS_AND_MEANINGS: Final = {
    "schema_version": ("int64", "Version of this layout"),
    "run_id": ("string", "Run that the sample belongs to"),
    "suite": ("string", "Name of the suite"),
    "point_id": ("string", "Id of the sweep point: 12 hex digits over all that is measured"),
    "point": ("string", "Name of the sweep point, for people"),
    "benchmark": ("string", "Import path of the benchmark class"),
    "options": ("string", "Every option of the point, as a JSON object with sorted keys"),
    "checkpoint": ("string", "What is saved and loaded, as a label for people"),
    "mesh": ("string", "The device mesh, as a label for people; empty without one"),
    "storage": ("string", "Where checkpoints lie; empty for the output directory"),
    "environment": ("string", "Name of the environment; empty for the one that runs the suite"),
    "processes": ("int64", "Number of host processes that ran the point together"),
    "conditions": (
        "string",
        "What was controlled, as JSON: `cache`, `host_memory`, `durable`, `x64`",
    ),
    "arm": ("string", "`baseline` or `candidate`; empty outside paired runs"),
    "block": ("int64", "Which block of a paired run; null outside paired runs"),
    "life": (
        "int64",
        "Which slot of the block had a worker of its own; null where there are no lives",
    ),
    "repeat": ("int64", "Which repeat of the point, from 0; warm-ups count on their own"),
    "warmup": ("bool", "Whether the repeat is a warm-up, to be left out of every statistic"),
    "host": ("int64", "Index of the host process"),
    "worker": ("string", "Id of the process that measured"),
    "attempt": (
        "int64",
        "0 for the first attempt at the repeat, then 1, 2, ...: verdicts take the first",
    ),
    "status": ("string", "How the attempt ended on this host: `passed`, `failed` or `skipped`"),
    "verified": (
        "string",
        (
            "What restored values were compared with on this host: `saved` in this repeat, a "
            "`reference`, only another load (`itself`), or `none`"
        ),
    ),
    "operation": ("string", "Name of the measured block, such as `save`"),
    "occurrence": (
        "int64",
        (
            "0 for the first block of that name in the repeat, then 1, 2, ...; null in the row of "
            "a failed attempt that measured nothing"
        ),
    ),
    "metric": ("string", "`<namespace>/<name>`, such as `0_basics/time_s`"),
    "value": ("float64", "The value, in `unit`"),
    "unit": ("string", "Unit of the value, such as `s`; empty when it has none"),
    "flags": (
        "string",
        (
            "Trouble with the object store during the operation: `throttled`, `storage errors`, "
            "`retries`, with commas between; empty when there was none"
        ),
    ),
}
"""Columns of `samples.parquet`, their Arrow types, and what they say; a change needs a new schema
version."""
COLUMNS: Final = {name: kind for name, (kind, _) in COLUMNS_AND_MEANINGS.items()}

_ROWS_PER_GROUP = 50_000
_TEXTS_ONCE: Final = [name for name in COLUMNS if name != "value"]
"""Columns that repeat few values, each of which is written once per group."""
_OF_SAMPLE: Final = ("operation", "occurrence", "metric", "value", "unit", "flags")
_NOTHING: Final = ("", None, "", None, "", "")
"""Row of a failed attempt that measured nothing, so that the table has every attempt."""


class SamplesFile:
    """`samples.parquet`, which takes record by record and holds one row group at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        """Begins the table in `file`, which stays open."""
        import pyarrow.parquet

        self._writer = pyarrow.parquet.ParquetWriter(
            file,
            arrow_schema(),
            compression="zstd",
            use_dictionary=_TEXTS_ONCE,
            store_schema=False,
        )
        self._records: list[Record] = []
        self._rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self._write()
        self._writer.close()

    def add(self, record: Record) -> None:
        """Adds the samples of a record and of its failed attempts."""
        self._records.append(record)
        self._rows += len(record.samples) + sum(len(each.samples) for each in record.attempts)
        if self._rows >= _ROWS_PER_GROUP:
            self._write()

    def _write(self) -> None:
        self._writer.write_table(samples_table(self._records))
        self._records, self._rows = [], 0


def samples_table(records: Iterable[Record]) -> pyarrow.Table:
    """Returns the samples of `records` in memory, with the columns of `COLUMNS`."""
    import pyarrow

    attempts: list[Mapping[str, Any]] = []
    samples: list[tuple[Any, ...]] = []
    counts: list[int] = []
    for record in records:
        for attempt, rows in _attempts(record):
            attempts.append(attempt)
            samples += rows
            counts.append(len(rows))
    schema = arrow_schema()
    of_attempts = pyarrow.schema([field for field in schema if field.name not in _OF_SAMPLE])
    places = [place for place, count in enumerate(counts) for _ in range(count)]
    table = pyarrow.Table.from_pylist(attempts, of_attempts).take(pyarrow.array(places, "int64"))
    columns = zip(*samples, strict=True) if samples else [()] * len(_OF_SAMPLE)
    for name, values in zip(_OF_SAMPLE, columns, strict=True):
        table = table.append_column(schema.field(name), pyarrow.array(values, COLUMNS[name]))
    return table.select(list(COLUMNS))


def arrow_schema() -> pyarrow.Schema:
    """Returns `COLUMNS` as an Arrow schema."""
    import pyarrow

    return pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in COLUMNS.items()])


def _attempts(record: Record) -> Iterator[tuple[dict[str, Any], list[tuple[Any, ...]]]]:
    """Yields the failed attempts of a record and itself, each with its rows by `_OF_SAMPLE`."""
    point = record.measured
    common = {
        "schema_version": SCHEMA_VERSION,
        "run_id": record.run_id,
        "suite": record.suite,
        "point_id": record.point_id,
        "point": record.point_name,
        "benchmark": point.benchmark,
        "options": without_credentials(json.dumps(point.options, sort_keys=True)),
        "checkpoint": point.checkpoint.label,
        "mesh": "" if point.mesh is None else point.mesh.label,
        "storage": point.storage or "",
        "environment": "" if point.environment is None else point.environment.name,
        "processes": point.processes,
        "conditions": point.conditions.model_dump_json(),
        "arm": record.arm or "",
        "block": record.block,
        "life": record.life,
        "repeat": record.repeat,
        "warmup": record.warmup,
        "host": record.host,
    }
    for number, attempt in enumerate(record.attempts):
        own = {"worker": attempt.worker, "attempt": number, "status": "failed", "verified": "none"}
        yield common | own, _rows(attempt.samples, {}) or [_NOTHING]
    last = {
        "worker": record.worker,
        "attempt": len(record.attempts),
        "status": record.status,
        "verified": "none" if record.state is None else record.state.verified,
    }
    said = {block: ", ".join(found) for block, found in flags_of(record).items()}
    yield common | last, _rows(record.samples, said)


def _rows(samples: Iterable[Sample], flags: Mapping[tuple[str, int], str]) -> list[tuple[Any, ...]]:
    return [
        (*block, sample.metric, sample.value, sample.unit, flags.get(block, ""))
        for sample in samples
        for block in [(sample.operation, sample.occurrence)]
    ]


_TOLERANCE: Final = datetime.timedelta(seconds=0.05)
"""Overlap that says nothing: beginnings are read from the clock of the day, which is set at times,
and lengths from one that is not."""


class _Interval(NamedTuple):
    """Time in which the process `worker` was busy with a repeat of the point or pair `entry`.

    `counted` is its series and index; None for one that only disturbs.
    """

    begun: datetime.datetime
    ended: datetime.datetime
    entry: str
    worker: str
    counted: tuple[str, int] | None


class OverlapFinder:
    """Collects when machines were busy, and finds the repeats that were not alone on theirs.

    A run whose steps wait for each other, as the measuring lock has them, has none. What another
    run measured is not in the records of this one, and neither are machines whose pods have names
    of their own and whose launcher does not tell the node.
    """

    def __init__(self) -> None:
        """Knows no repeat yet."""
        self._busy: dict[str, list[_Interval]] = {}

    def add(self, repeat: Repeat) -> None:
        """Takes one repeat, of any kind: warm-ups and failures disturb as well."""
        counted = (repeat.series.id, repeat.index) if repeat.counts else None
        for record in repeat.records.values():
            machine = _machine(record)
            if machine:
                self._busy.setdefault(machine, []).extend(_intervals(record, counted))

    def found(self) -> Mapping[str, int]:
        """Returns by id of the series how many of its repeats that count were not alone."""
        accompanied = {
            counted
            for intervals in self._busy.values()
            for counted in _accompanied(sorted(intervals, key=lambda each: each.begun))
        }
        return collections.Counter(series for series, _ in accompanied)

    @staticmethod
    def warning(repeats: int, what: str) -> str:
        """Returns the headline's part about repeats that were not alone; empty if all were."""
        if not repeats:
            return ""
        said = "1 repeat was" if repeats == 1 else f"{repeats} repeats were"
        return (
            f"{said} not alone: others were measured on the same machine meanwhile, so do not "
            f"trust {what}"
        )


def _machine(record: Record) -> str:
    host = record.provenance.get("host")
    if not isinstance(host, Mapping):
        return ""
    return str(host.get("node") or host.get("name") or "")


def _intervals(record: Record, counted: tuple[str, int] | None) -> Iterator[_Interval]:
    """Yields when a record and the failed tries before it kept their machine busy."""
    tries = [(each.started_at, each.duration_s, each.worker, None) for each in record.attempts]
    for begun, seconds, worker, which in (
        *tries,
        (record.started_at, record.duration_s, record.worker, counted),
    ):
        if worker and seconds is not None:
            ended = begun + datetime.timedelta(seconds=seconds)
            yield _Interval(begun, ended, record.point_id, worker, which)


def _accompanied(intervals: Iterable[_Interval]) -> Iterator[tuple[str, int]]:
    """Yields the repeats that count and overlap with one of another entry."""
    active: list[tuple[datetime.datetime, int, _Interval]] = []
    for number, interval in enumerate(intervals):
        while active and active[0][0] <= interval.begun + _TOLERANCE:
            heapq.heappop(active)
        if interval.ended <= interval.begun + _TOLERANCE:
            continue
        for _, _, other in active:
            if other.entry != interval.entry and other.worker != interval.worker:
                yield from (each.counted for each in (interval, other) if each.counted)
        heapq.heappush(active, (interval.ended, number, interval))


_THROTTLED: Final = (408, 429)
_ERRORS: Final = range(500, 600)
_KINDS: Final[tuple[Trouble, ...]] = ("throttled", "storage errors", "retries")
_SAID: Final[Mapping[Trouble, str]] = {
    "throttled": "throttled answers (429 or 408)",
    "storage errors": "failed answers (5xx)",
    "retries": "retries",
}


def troubles_of(samples: Iterable[Sample]) -> tuple[StoreTrouble, ...]:
    """Sums up counters among the samples of one repeat; absent counters are 0.

    Answers of 404 and the like are normal: a save asks for what is not there yet.
    """
    found: Counter[tuple[str, int, Trouble]] = Counter()
    for sample in samples:
        kind = _kind(sample.metric)
        if kind is not None and sample.value > 0:
            found[sample.operation, sample.occurrence, kind] += int(sample.value)
    return tuple(
        StoreTrouble(operation=operation, occurrence=occurrence, kind=kind, count=count)
        for (operation, occurrence, kind), count in found.items()
    )


@functools.lru_cache(maxsize=4096)  # every sample of every repeat asks, with some hundred names
def _kind(metric: str) -> Trouble | None:
    if metric == RETRIES.name:
        return "retries"
    code = code_of(metric)
    if code in _THROTTLED:
        return "throttled"
    return "storage errors" if code in _ERRORS else None


def flags_of(record: Record) -> dict[tuple[str, int], tuple[Trouble, ...]]:
    """Returns the kinds of trouble of each operation and occurrence that had any."""
    found: dict[tuple[str, int], set[Trouble]] = {}
    for trouble in record.store_troubles:
        found.setdefault((trouble.operation, trouble.occurrence), set()).add(trouble.kind)
    return {block: tuple(filter(kinds.__contains__, _KINDS)) for block, kinds in found.items()}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoreFlags:
    """Trouble with an object store in the repeats of one operation."""

    flagged: int  # repeats in which the operation had trouble on some host
    repeats: int  # repeats that have the operation
    counts: Mapping[Trouble, int]  # how much of each kind there was, over all hosts and repeats

    @property
    def sentence(self) -> str:
        """What storage did, for people; empty when there was no trouble."""
        if not self.flagged:
            return ""
        counted = [f"{count} {_SAID[kind]}" for kind, count in self.counts.items()]
        return f"{self.flagged} of {self.repeats} repeats had trouble with storage: " + ", ".join(
            counted
        )


def store_flags(repeats: Iterable[Repeat]) -> dict[str, StoreFlags]:
    """Returns the trouble with an object store in each operation of some repeats."""
    total: Counter[str] = Counter()
    flagged: Counter[str] = Counter()
    counts: Counter[tuple[str, Trouble]] = Counter()
    for repeat in repeats:
        total.update(list(dict.fromkeys(operation for operation, _ in repeat.seconds())))
        flagged.update(repeat.flagged)
        for record in repeat.records.values():
            for trouble in record.store_troubles:
                counts[trouble.operation, trouble.kind] += trouble.count
    return {
        operation: StoreFlags(
            flagged=flagged[operation],
            repeats=number,
            counts={kind: n for kind in _KINDS if (n := counts[operation, kind])},
        )
        for operation, number in total.items()
    }
