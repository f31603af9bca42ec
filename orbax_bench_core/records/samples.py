"""Samples table: all samples of a run as `samples.parquet`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

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

_NOTHING: Mapping[str, Any] = MappingProxyType(
    {"operation": "", "occurrence": None, "metric": "", "value": None, "unit": "", "flags": ""}
)
"""Row of a failed attempt that measured nothing, so that the table has every attempt."""


def rows(record: Record) -> Iterator[dict[str, Any]]:
    """Yields one row per sample of a record and of its failed attempts, as `COLUMNS` has it."""
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
        yield from (
            _rows({**common, **own}, attempt.samples, {})
            if attempt.samples
            else [{**common, **own, **_NOTHING}]
        )
    last = {
        "worker": record.worker,
        "attempt": len(record.attempts),
        "status": record.status,
        "verified": "none" if record.state is None else record.state.verified,
    }
    yield from _rows({**common, **last}, record.samples, flags_of(record))


def _rows(
    common: Mapping[str, Any],
    samples: Iterable[Sample],
    flags: Mapping[tuple[str, int], Sequence[str]],
) -> Iterator[dict[str, Any]]:
    for sample in samples:
        yield {
            **common,
            "operation": sample.operation,
            "occurrence": sample.occurrence,
            "metric": sample.metric,
            "value": sample.value,
            "unit": sample.unit,
            "flags": ", ".join(flags.get((sample.operation, sample.occurrence), ())),
        }


def write_parquet(records: Iterable[Record], file: IO[bytes]) -> None:
    """Writes the samples of `records` as a Parquet file, holding one row group at a time."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetWriter(file, arrow_schema(), compression="zstd") as writer:
        batch: list[dict[str, Any]] = []
        for record in records:
            batch.extend(rows(record))
            if len(batch) >= _ROWS_PER_GROUP:
                writer.write_table(_table(batch))
                batch.clear()
        writer.write_table(_table(batch))


def samples_table(records: Iterable[Record]) -> pyarrow.Table:
    """Returns the samples of `records` in memory, with the columns of `COLUMNS`."""
    return _table([row for record in records for row in rows(record)])


def arrow_schema() -> pyarrow.Schema:
    """Returns `COLUMNS` as an Arrow schema."""
    import pyarrow

    return pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in COLUMNS.items()])


def _table(found: Sequence[Mapping[str, Any]]) -> pyarrow.Table:
    import pyarrow

    columns = [_column([row[name] for row in found], kind) for name, kind in COLUMNS.items()]
    return pyarrow.Table.from_arrays(columns, schema=arrow_schema())


def _column(values: Sequence[Any], kind: str) -> pyarrow.Array:
    """Returns an Arrow array made from its buffers.

    Arrow's own way from lists imports pandas wherever that is installed, which takes longer than
    all of this.
    """
    import numpy as np
    import pyarrow

    valid = np.fromiter((value is not None for value in values), bool, len(values))
    bitmap = None if valid.all() else _buffer(np.packbits(valid, bitorder="little"))
    if kind == "string":
        texts = [(value or "").encode() for value in values]
        offsets = np.zeros(len(texts) + 1, np.int32)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        data = [_buffer(offsets), pyarrow.py_buffer(b"".join(texts))]
    else:
        numbers = np.array([0 if value is None else value for value in values], kind)
        packed = np.packbits(numbers, bitorder="little") if kind == "bool" else numbers
        data = [_buffer(packed)]
    return pyarrow.Array.from_buffers(pyarrow.type_for_alias(kind), len(values), [bitmap, *data])


def _buffer(array: np.ndarray) -> pyarrow.Buffer:
    import pyarrow

    return pyarrow.py_buffer(array.tobytes())
