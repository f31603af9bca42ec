"""Samples table: all samples of a run as `samples.parquet`."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

from orbax_bench_core.errors import redacted
from orbax_bench_core.records.layout import Columns, Layout, columns_of
from orbax_bench_core.records.record import SCHEMA_VERSION, Record
from orbax_bench_core.records.store_troubles import flags_of
from orbax_bench_core.sweep import SweepPoint

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


class _Rows(NamedTuple):
    """Rows that differ in their samples alone.

    Attributes:
        point: What was measured, by column; the records of a point share it.
        own: The values that they share beside it, by column.
        columns: Their samples; None for one row without any: a failed attempt that measured nothing
            has a row, so that the table has every attempt.
        flags: Trouble with storage, by operation and occurrence.
    """

    point: Mapping[str, Any]
    own: Mapping[str, Any]
    columns: Columns | None
    flags: Mapping[tuple[str, int], str]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return 1 if self.columns is None else len(self.columns.values)


def _rows_of(record: Record, columns: Columns, of_point: Mapping[str, Any]) -> Iterator[_Rows]:
    """Yields one row per sample of a record's failed attempts, and of itself.

    Args:
        record: The record.
        columns: Its samples by column.
        of_point: What `_of_point` says of the point that it measured.
    """
    common = {
        "schema_version": SCHEMA_VERSION,
        "run_id": record.run_id,
        "suite": record.suite,
        "point_id": record.point_id,
        "point": record.point_name,
        "arm": record.arm or "",
        "block": record.block,
        "life": record.life,
        "repeat": record.repeat,
        "warmup": record.warmup,
        "host": record.host,
    }
    for number, attempt in enumerate(record.attempts):
        own = {"worker": attempt.worker, "attempt": number, "status": "failed", "verified": "none"}
        measured = columns_of(attempt.samples) if attempt.samples else None
        yield _Rows(of_point, {**common, **own}, measured, {})
    last = {
        "worker": record.worker,
        "attempt": len(record.attempts),
        "status": record.status,
        "verified": "none" if record.state is None else record.state.verified,
    }
    said = {block: ", ".join(found) for block, found in flags_of(record).items()}
    yield _Rows(of_point, {**common, **last}, columns, said)


def _of_point(point: SweepPoint) -> dict[str, Any]:
    """Returns the columns that say what was measured."""
    return {
        "benchmark": point.benchmark,
        "options": redacted(json.dumps(point.options, sort_keys=True)),
        "checkpoint": point.checkpoint.label,
        "mesh": "" if point.mesh is None else point.mesh.label,
        "storage": point.storage or "",
        "environment": "" if point.environment is None else point.environment.name,
        "processes": point.processes,
        "conditions": point.conditions.model_dump_json(),
    }


class SamplesFile:
    """`samples.parquet`, which takes record by record and holds one row group at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        """Begins the table in `file`, which stays open."""
        import pyarrow.parquet

        self._writer = pyarrow.parquet.ParquetWriter(file, arrow_schema(), compression="zstd")
        self._rows: list[_Rows] = []
        self._count = 0
        self._point: tuple[SweepPoint, Mapping[str, Any]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        import pyarrow

        if error[0] is None:
            self._write()
        self._writer.close()
        pyarrow.default_memory_pool().release_unused()  # which it keeps for the next table

    def add(self, record: Record, columns: Columns | None = None) -> None:
        """Adds the samples of a record and of its failed attempts.

        Args:
            record: The record.
            columns: Its samples by column, where the caller has them.
        """
        point = record.measured
        if self._point is None or self._point[0] is not point:  # repeats share theirs
            self._point = point, _of_point(point)
        columns = columns or columns_of(record.samples)
        for rows in _rows_of(record, columns, self._point[1]):
            self._rows.append(rows)
            self._count += rows.rows
        if self._count >= _ROWS_PER_GROUP:
            self._write()

    def _write(self) -> None:
        self._writer.write_table(_table(self._rows))
        self._rows, self._count = [], 0


def samples_table(records: Iterable[Record]) -> pyarrow.Table:
    """Returns the samples of `records` in memory, with the columns of `COLUMNS`."""
    return _table(
        [
            rows
            for record in records
            for rows in _rows_of(record, columns_of(record.samples), _of_point(record.measured))
        ]
    )


def arrow_schema() -> pyarrow.Schema:
    """Returns `COLUMNS` as an Arrow schema."""
    import pyarrow

    return pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in COLUMNS.items()])


def _table(found: Sequence[_Rows]) -> pyarrow.Table:
    import pyarrow

    counts = [rows.rows for rows in found]
    by_point = [list(rows) for _, rows in itertools.groupby(found, key=lambda each: id(each.point))]
    points = [rows[0].point for rows in by_point]
    of_points = [sum(each.rows for each in rows) for rows in by_point]
    made = _sample_columns(found)
    for name, kind in COLUMNS.items():
        if points and name in points[0]:
            made[name] = _column([point[name] for point in points], kind, of_points)
        elif name not in made:
            made[name] = _column([rows.own[name] for rows in found], kind, counts)
    return pyarrow.Table.from_arrays([made[name] for name in COLUMNS], schema=arrow_schema())


def _sample_columns(found: Sequence[_Rows]) -> dict[str, pyarrow.Array]:
    """Returns the columns that differ between the samples of a record."""
    import numpy as np

    parts = [_parts(None if rows.columns is None else rows.columns.layout) for rows in found]
    texts = {
        name: _text_array(
            np.concatenate([np.zeros(0, np.int32), *(part.lengths[name] for part in parts)]),
            b"".join([part.texts[name] for part in parts]),
        )
        for name in _TEXTS
    }
    counts = [rows.rows for rows in found]
    if any(rows.flags for rows in found):
        flags = _column([text for rows in found for text in _flags(rows)], "string")
    else:
        flags = _column([""] * len(found), "string", counts)
    if all(len(set(part.occurrences)) == 1 for part in parts):
        occurrences = _column([part.occurrences[0] for part in parts], "int64", counts)
    else:
        every = [occurrence for part in parts for occurrence in part.occurrences]
        occurrences = _column(every, "int64")
    return {**texts, "occurrence": occurrences, "value": _values(found), "flags": flags}


def _values(found: Sequence[_Rows]) -> pyarrow.Array:
    """Returns the values of all samples."""
    import numpy as np
    import pyarrow

    known = [rows.columns.values for rows in found if rows.columns is not None]
    if len(known) < len(found):
        nothing: Sequence[float | None] = (None,)
        parts = [nothing if rows.columns is None else rows.columns.values for rows in found]
        return _column(list(itertools.chain.from_iterable(parts)), "float64")
    values = np.fromiter(itertools.chain.from_iterable(known), np.float64)
    return pyarrow.Array.from_buffers(pyarrow.float64(), len(values), [None, _buffer(values)])


def _flags(rows: _Rows) -> Sequence[str]:
    if rows.columns is None:
        return ("",)
    layout = rows.columns.layout
    blocks = zip(layout.operations, layout.occurrences, strict=True)
    return [rows.flags.get(block, "") for block in blocks]


_TEXTS = ("operation", "metric", "unit")


class _Parts(NamedTuple):
    """Columns that the rows of a layout add to its own.

    Attributes:
        lengths: Length of each text in bytes, by column.
        texts: All texts, by column.
        occurrences: Those of the samples.
    """

    lengths: Mapping[str, np.ndarray]
    texts: Mapping[str, bytes]
    occurrences: Sequence[int | None]


@functools.lru_cache(maxsize=256)
def _parts(layout: Layout | None) -> _Parts:
    """Returns what a layout adds to its columns; None is that of a row without a sample."""
    import numpy as np

    columns: tuple[Sequence[str], ...] = (("",),) * len(_TEXTS)
    if layout is not None:
        columns = layout.operations, layout.metrics, layout.units
    encoded = {
        name: [text.encode() for text in column]
        for name, column in zip(_TEXTS, columns, strict=True)
    }
    return _Parts(
        {
            name: np.array([len(text) for text in texts], np.int32)
            for name, texts in encoded.items()
        },
        {name: b"".join(texts) for name, texts in encoded.items()},
        (None,) if layout is None else layout.occurrences,
    )


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

    if counts is None:
        counts = [1] * len(values)
    elif len(set(values)) == 1:  # as of a run, or of what nobody uses
        values, counts = values[:1], [sum(counts)]
    times = np.array(counts, np.int64)
    valid = np.fromiter((value is not None for value in values), bool, len(values)).repeat(times)
    bitmap = None if valid.all() else _buffer(np.packbits(valid, bitorder="little"))
    if kind == "string":
        texts = [(value or "").encode() for value in values]
        lengths = np.fromiter(map(len, texts), np.int32, len(texts))
        every = b"".join([text * count for text, count in zip(texts, counts, strict=True)])
        return _text_array(lengths.repeat(times), every, bitmap)
    numbers = np.array([0 if value is None else value for value in values], kind).repeat(times)
    packed = np.packbits(numbers, bitorder="little") if kind == "bool" else numbers
    data = [_buffer(packed)]
    return pyarrow.Array.from_buffers(pyarrow.type_for_alias(kind), len(valid), [bitmap, *data])


def _text_array(
    lengths: np.ndarray, texts: bytes, bitmap: pyarrow.Buffer | None = None
) -> pyarrow.Array:
    """Returns an Arrow array of texts from the length of each in bytes, and all of them."""
    import numpy as np
    import pyarrow

    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    data = [bitmap, _buffer(offsets), pyarrow.py_buffer(texts)]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(lengths), data)


def _buffer(array: np.ndarray) -> pyarrow.Buffer:
    import pyarrow

    return pyarrow.py_buffer(array)
