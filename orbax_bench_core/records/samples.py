"""Samples table, `samples.parquet`: all samples of a run, one a row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, Final, Self

from orbax_bench_core.errors import without_credentials
from orbax_bench_core.measure import Sample
from orbax_bench_core.records.record import Record
from orbax_bench_core.records.store_troubles import flags_of
from orbax_bench_core.records.versions import SCHEMA_VERSION

if TYPE_CHECKING:
    import pyarrow


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
            file, arrow_schema(), compression="zstd", use_dictionary=_TEXTS_ONCE, store_schema=False
        )
        self._records: list[Record] = []
        self._rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if error[0] is None:
                self._write()
                self._writer.close()
        finally:
            # A file that is given up has no end. Collected while it is open, the writer would write
            # one, into a file that is closed by then.
            self._writer.is_open = False

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
