"""Samples table: all samples of a run as `samples.parquet`."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Self

from orbax_bench_core.errors import without_credentials
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
    """Yields one row per sample of a record's failed attempts, and of itself."""
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
        "options": without_credentials(json.dumps(point.options, sort_keys=True)),
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

        self._writer = pyarrow.parquet.ParquetWriter(
            file,
            _coded_schema(),
            compression="zstd",
            use_dictionary=[name for name in COLUMNS if name != "value"],
            store_schema=False,  # readers find texts as texts, however they were written
        )
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
        """Adds the samples of a record and of its failed attempts."""
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
    found = [
        rows
        for record in records
        for rows in _rows_of(record, columns_of(record.samples), _of_point(record.measured))
    ]
    return _table(found).cast(arrow_schema())


def arrow_schema() -> pyarrow.Schema:
    """Returns `COLUMNS` as an Arrow schema."""
    import pyarrow

    return pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in COLUMNS.items()])


def _coded_schema() -> pyarrow.Schema:
    """Returns the schema of what `_table` makes."""
    import pyarrow

    coded = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    kinds = {name: coded if kind == "string" else kind for name, kind in COLUMNS.items()}
    return pyarrow.schema(list(kinds.items()))


def _table(found: Sequence[_Rows]) -> pyarrow.Table:
    """Returns rows as a table with each text once: writing these takes half as long."""
    import pyarrow

    counts = [rows.rows for rows in found]
    by_point = [list(rows) for _, rows in itertools.groupby(found, key=lambda each: id(each.point))]
    points = [rows[0].point for rows in by_point]
    of_points = [sum(each.rows for each in rows) for rows in by_point]
    made = _sample_columns(found, counts)
    for name, kind in COLUMNS.items():
        if points and name in points[0]:
            made[name] = _repeated([point[name] for point in points], kind, of_points)
        elif name not in made:
            made[name] = _repeated([rows.own[name] for rows in found], kind, counts)
    return pyarrow.Table.from_arrays([made[name] for name in COLUMNS], schema=_coded_schema())


def _sample_columns(found: Sequence[_Rows], counts: Sequence[int]) -> dict[str, pyarrow.Array]:
    """Returns the columns that differ between the samples of a record."""
    layouts = [_NOTHING if rows.columns is None else rows.columns.layout for rows in found]
    if any(rows.flags for rows in found):
        flags = _joined([_flags(rows) for rows in found], "string")
    else:
        flags = _repeated([""] * len(found), "string", counts)
    nothing: Sequence[int | None] = (None,)
    return {
        "operation": _joined([layout.operations for layout in layouts], "string"),
        "occurrence": _joined(
            [nothing if layout is _NOTHING else layout.occurrences for layout in layouts], "int64"
        ),
        "metric": _joined([layout.metrics for layout in layouts], "string"),
        "value": _values(found),
        "unit": _joined([layout.units for layout in layouts], "string"),
        "flags": flags,
    }


_NOTHING: Final = Layout([("", 0, "", "")])
"""Layout of the one row of an attempt that measured nothing; it has no occurrence either."""


def _values(found: Sequence[_Rows]) -> pyarrow.Array:
    """Returns the values of all samples."""
    import numpy as np
    import pyarrow

    measured = np.fromiter((rows.columns is not None for rows in found), bool, len(found))
    every = ((math.nan,) if rows.columns is None else rows.columns.values for rows in found)
    values = np.fromiter(itertools.chain.from_iterable(every), np.float64)
    bitmap = None if measured.all() else _bitmap(measured.repeat([rows.rows for rows in found]))
    return pyarrow.Array.from_buffers(pyarrow.float64(), len(values), [bitmap, _buffer(values)])


def _flags(rows: _Rows) -> Sequence[str]:
    if rows.columns is None:
        return ("",)
    layout = rows.columns.layout
    blocks = zip(layout.operations, layout.occurrences, strict=True)
    return [rows.flags.get(block, "") for block in blocks]


def _repeated(values: Sequence[Any], kind: str, counts: Sequence[int]) -> pyarrow.Array:
    """Returns a column of values, each repeated so many times."""
    import numpy as np

    known = {value: code for code, value in enumerate(dict.fromkeys(values))}
    codes = np.fromiter(map(known.__getitem__, values), np.int32, len(values))
    return _column(codes.repeat(np.array(counts, np.int64)), list(known), kind)


def _joined(parts: Sequence[Sequence[Any]], kind: str) -> pyarrow.Array:
    """Returns a column of parts, one after the other; many of them are the same object."""
    import numpy as np

    known: dict[Any, int] = {}
    codes = {
        place: np.array([known.setdefault(value, len(known)) for value in part], np.int32)
        for place, part in {id(part): part for part in parts}.items()
    }
    every = [codes[id(part)] for part in parts]
    return _column(np.concatenate([np.zeros(0, np.int32), *every]), list(known), kind)


def _column(codes: np.ndarray, known: Sequence[Any], kind: str) -> pyarrow.Array:
    """Returns an Arrow array made from its buffers.

    Arrow's own way from lists imports pandas wherever that is installed, which takes longer than
    all of this.
    """
    import numpy as np
    import pyarrow

    if kind == "string":
        data = [None, _buffer(codes)]
        indices = pyarrow.Array.from_buffers(pyarrow.int32(), len(codes), data)
        return pyarrow.DictionaryArray.from_arrays(indices, _texts(known))
    valid = np.array([value is not None for value in known], bool)[codes]
    numbers = np.array([0 if value is None else value for value in known], kind)[codes]
    packed = np.packbits(numbers, bitorder="little") if kind == "bool" else numbers
    data = [None if valid.all() else _bitmap(valid), _buffer(packed)]
    return pyarrow.Array.from_buffers(pyarrow.type_for_alias(kind), len(codes), data)


def _texts(texts: Sequence[str]) -> pyarrow.Array:
    import numpy as np
    import pyarrow

    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    data = [None, _buffer(offsets), pyarrow.py_buffer(b"".join(encoded))]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(encoded), data)


def _bitmap(valid: np.ndarray) -> pyarrow.Buffer:
    """Returns which rows have a value, a bit each."""
    import numpy as np

    return _buffer(np.packbits(valid, bitorder="little"))


def _buffer(array: np.ndarray) -> pyarrow.Buffer:
    import pyarrow

    return pyarrow.py_buffer(array)
