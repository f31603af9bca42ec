"""Samples table: all samples of a run as `samples.parquet`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

from orbax_bench_core.measure import Sample
from orbax_bench_core.records.record import SCHEMA_VERSION, Record
from orbax_bench_core.records.store_troubles import flags_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow

COLUMNS = {
    "schema_version": "int64",
    "run_id": "string",
    "suite": "string",
    "point_id": "string",
    "point": "string",
    "benchmark": "string",
    "options": "string",
    "checkpoint": "string",
    "mesh": "string",
    "storage": "string",
    "environment": "string",
    "processes": "int64",
    "conditions": "string",
    "arm": "string",
    "block": "int64",
    "life": "int64",
    "repeat": "int64",
    "warmup": "bool",
    "host": "int64",
    "worker": "string",
    "attempt": "int64",
    "status": "string",
    "verified": "string",
    "operation": "string",
    "occurrence": "int64",
    "metric": "string",
    "value": "float64",
    "unit": "string",
    "flags": "string",
}
"""Columns of `samples.parquet` and their Arrow types; a change needs a new schema version."""

_ROWS_PER_GROUP = 50_000

_OF_A_SAMPLE = ("operation", "occurrence", "metric", "value", "unit", "flags")
_NOTHING = ("", None, "", None, "", "")
"""A failed attempt that measured nothing has a row, so that the table has every attempt."""


class _Rows(NamedTuple):
    """Rows that differ in their samples alone.

    Attributes:
        same: The values that they share, by column.
        own: Those of each row, in the order of `_OF_A_SAMPLE`.
    """

    same: Mapping[str, Any]
    own: Sequence[tuple[Any, ...]]


def _rows_of(record: Record) -> Iterator[_Rows]:
    """Yields one row per sample of a record's failed attempts, and of itself."""
    point = record.measured
    common = {
        "schema_version": SCHEMA_VERSION,
        "run_id": record.run_id,
        "suite": record.suite,
        "point_id": record.point_id,
        "point": record.point_name,
        "benchmark": point.benchmark,
        "options": json.dumps(point.options, sort_keys=True),
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
        yield _Rows({**common, **own}, _own(attempt.samples, {}) or [_NOTHING])
    last = {
        "worker": record.worker,
        "attempt": len(record.attempts),
        "status": record.status,
        "verified": "none" if record.state is None else record.state.verified,
    }
    yield _Rows({**common, **last}, _own(record.samples, flags_of(record)))


def _own(
    samples: Iterable[Sample], flags: Mapping[tuple[str, int], Sequence[str]]
) -> list[tuple[Any, ...]]:
    said = {block: ", ".join(found) for block, found in flags.items()}
    return [
        (
            sample.operation,
            sample.occurrence,
            sample.metric,
            sample.value,
            sample.unit,
            said.get((sample.operation, sample.occurrence), ""),
        )
        for sample in samples
    ]


class SamplesFile:
    """`samples.parquet`, which takes record by record and holds one row group at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        """Begins the table in `file`, which stays open."""
        import pyarrow.parquet

        self._writer = pyarrow.parquet.ParquetWriter(file, arrow_schema(), compression="zstd")
        self._rows: list[_Rows] = []
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self._write()
        self._writer.close()

    def add(self, record: Record) -> None:
        """Adds the samples of a record and of its failed attempts."""
        for rows in _rows_of(record):
            self._rows.append(rows)
            self._count += len(rows.own)
        if self._count >= _ROWS_PER_GROUP:
            self._write()

    def _write(self) -> None:
        self._writer.write_table(_table(self._rows))
        self._rows, self._count = [], 0


def samples_table(records: Iterable[Record]) -> pyarrow.Table:
    """Returns the samples of `records` in memory, with the columns of `COLUMNS`."""
    return _table([rows for record in records for rows in _rows_of(record)])


def arrow_schema() -> pyarrow.Schema:
    """Returns `COLUMNS` as an Arrow schema."""
    import pyarrow

    return pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in COLUMNS.items()])


def _table(found: Sequence[_Rows]) -> pyarrow.Table:
    import pyarrow

    counts = [len(rows.own) for rows in found]
    every = [row for rows in found for row in rows.own]
    place = {name: number for number, name in enumerate(_OF_A_SAMPLE)}
    columns = [
        _column([row[place[name]] for row in every], kind)
        if name in place
        else _column([rows.same[name] for rows in found], kind, counts)
        for name, kind in COLUMNS.items()
    ]
    return pyarrow.Table.from_arrays(columns, schema=arrow_schema())


def _column(values: Sequence[Any], kind: str, counts: Sequence[int] | None = None) -> pyarrow.Array:
    """Returns an Arrow array made from its buffers.

    Arrow's own way from lists imports pandas wherever that is installed, which takes longer than
    all of this.

    Args:
        values: What it holds.
        kind: Its Arrow type.
        counts: How often each value is repeated; None for once.
    """
    import numpy as np
    import pyarrow

    times = np.ones(len(values), np.int64) if counts is None else np.array(counts, np.int64)
    valid = np.fromiter((value is not None for value in values), bool, len(values)).repeat(times)
    bitmap = None if valid.all() else _buffer(np.packbits(valid, bitorder="little"))
    if kind == "string":
        texts = [(value or "").encode() for value in values]
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        offsets = np.zeros(len(valid) + 1, np.int32)
        np.cumsum(lengths.repeat(times), out=offsets[1:])
        if counts is not None:
            texts = [text * count for text, count in zip(texts, counts, strict=True)]
        data = [_buffer(offsets), pyarrow.py_buffer(b"".join(texts))]
    else:
        numbers = np.array([0 if value is None else value for value in values], kind).repeat(times)
        packed = np.packbits(numbers, bitorder="little") if kind == "bool" else numbers
        data = [_buffer(packed)]
    return pyarrow.Array.from_buffers(pyarrow.type_for_alias(kind), len(valid), [bitmap, *data])


def _buffer(array: np.ndarray) -> pyarrow.Buffer:
    import pyarrow

    return pyarrow.py_buffer(array.tobytes())
