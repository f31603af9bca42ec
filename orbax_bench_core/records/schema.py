"""The published layout of results: JSON Schema of the records, meaning of the sample columns.

`python -m orbax_bench_core.records.schema` writes them into `docs/schema`.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pydantic
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from orbax_bench_core.config import DescribedSchema
from orbax_bench_core.records.record import Record
from orbax_bench_core.records.run_info import RunInfo
from orbax_bench_core.records.samples import COLUMNS_AND_MEANINGS
from orbax_bench_core.records.versions import SCHEMA_VERSION

_NOT_FINITE = {"enum": ["NaN", "Infinity", "-Infinity"]}


def documents() -> dict[str, str]:
    """Returns the content of every file of `docs/schema` that follows from the code, by name."""
    return {
        "record.json": _json_schema(Record, "record"),
        "run.json": _json_schema(RunInfo, "run"),
        "samples.md": _samples_markdown(),
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


def _samples_markdown() -> str:
    lines = [
        f"| `{name}` | {kind} | {said} |" for name, (kind, said) in COLUMNS_AND_MEANINGS.items()
    ]
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
