"""The published layout of results: JSON Schema of the records, meaning of the sample columns.

`python -m orbax_bench_core.records.schema` writes them into `docs/schema`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pydantic
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from orbax_bench_core.config import DescribedSchema
from orbax_bench_core.records.record import SCHEMA_VERSION, Record
from orbax_bench_core.records.run_info import RunInfo
from orbax_bench_core.records.samples import COLUMNS

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "schema_version": "Version of this layout",
        "run_id": "Run that the sample belongs to",
        "suite": "Name of the suite",
        "point_id": "Id of the sweep point: 12 hex digits over all that is measured",
        "point": "Name of the sweep point, for people",
        "benchmark": "Import path of the benchmark class",
        "options": "Every option of the point, as a JSON object with sorted keys",
        "checkpoint": "What is saved and loaded, as a label for people",
        "mesh": "The device mesh, as a label for people; empty without one",
        "storage": "Where checkpoints lie; empty for the output directory",
        "environment": "Name of the environment; empty for the one that runs the suite",
        "processes": "Number of host processes that ran the point together",
        "conditions": "What was controlled, as JSON: `cache`, `host_memory`, `durable`, `x64`",
        "arm": "`baseline` or `candidate`; empty outside paired runs",
        "block": "Which block of a paired run; null outside paired runs",
        "life": "Which slot of the block had a worker of its own; null where there are no lives",
        "repeat": "Which repeat of the point, from 0; warm-ups count on their own",
        "warmup": "Whether the repeat is a warm-up, to be left out of every statistic",
        "host": "Index of the host process",
        "worker": "Id of the process that measured",
        "attempt": "0 for the first attempt at the repeat, then 1, 2, ...: verdicts take the first",
        "status": "How the attempt ended on this host: `passed`, `failed` or `skipped`",
        "verified": "What restored values were compared with on this host: `saved` in this repeat, "
        "a `reference`, only another load (`itself`), or `none`",
        "operation": "Name of the measured block, such as `save`",
        "occurrence": "0 for the first block of that name in the repeat, then 1, 2, ...; null in "
        "the row of a failed attempt that measured nothing",
        "metric": "`<namespace>/<name>`, such as `0_basics/time_s`",
        "value": "The value, in `unit`",
        "unit": "Unit of the value, such as `s`; empty when it has none",
        "flags": "Trouble with the object store during the operation: `throttled`, "
        "`storage errors`, `retries`, with commas between; empty when there was none",
    }
)
"""Meaning of each column of `samples.parquet`."""

_NOT_FINITE = {"enum": ["NaN", "Infinity", "-Infinity"]}


def documents() -> dict[str, str]:
    """Returns the content of every file of `docs/schema` that follows from the code, by name."""
    return {
        "record.json": _json_schema(Record, "record"),
        "run.json": _json_schema(RunInfo, "run"),
        "samples.md": _samples_markdown(COLUMNS, MEANINGS),
    }


def main(arguments: Sequence[str]) -> None:
    """Writes `documents` into the directory that is named, or into `docs/schema`."""
    directory = Path(arguments[0] if arguments else "docs/schema")
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in documents().items():
        (directory / name).write_text(text)


class _Generator(DescribedSchema):
    """Also allows a word where JSON has no number."""

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        number = super().float_schema(schema)
        words = self._config.ser_json_inf_nan == "strings"
        return {"anyOf": [number, _NOT_FINITE]} if words else number


def _json_schema(model: type[pydantic.BaseModel], name: str) -> str:
    schema = model.model_json_schema(mode="serialization", schema_generator=_Generator)
    document: dict[str, Any] = {
        "$schema": GenerateJsonSchema.schema_dialect,
        "$id": f"urn:orbax-bench:{name}:{SCHEMA_VERSION}",
        **schema,
    }
    return json.dumps(document, indent=2) + "\n"


def _samples_markdown(columns: Mapping[str, str], meanings: Mapping[str, str]) -> str:
    if columns.keys() != meanings.keys():
        names = ", ".join(sorted(columns.keys() ^ meanings.keys()))
        raise ValueError(
            f"columns and their meanings differ in: {names}; "
            "give each column of COLUMNS one entry in MEANINGS"
        )
    lines = [f"| `{name}` | {kind} | {meanings[name]} |" for name, kind in columns.items()]
    heading = (
        "# `samples.parquet`",
        "",
        f"Schema version {SCHEMA_VERSION}: one row per sample. This page follows from the code, by",
        "`python -m orbax_bench_core.records.schema`.",
        "",
        "| column | type | meaning |",
        "|---|---|---|",
    )
    return "\n".join([*heading, *lines, ""])


if __name__ == "__main__":
    main(sys.argv[1:])
