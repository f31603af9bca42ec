"""Schema versions of records: what is said of other versions."""

from __future__ import annotations

import json
import re
from typing import Final

from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.records.record import SCHEMA_VERSION

_FIRST_KEY: Final = re.compile(rb'\s*\{\s*"schema_version"\s*:\s*(\d{1,9})\s*[,}]')
"""The version is a record's first key, so that most records need not be parsed to read it."""


def other_version(data: bytes) -> str:
    """Returns what to say of a record of a schema version that is not read; empty for others.

    What is no JSON has no version: a torn record is a repeat that is to be run again.
    """
    found = _version(data)
    if found is None or found == SCHEMA_VERSION:
        return ""
    reads = f"schema {found!r}; this one reads {SCHEMA_VERSION}"
    if isinstance(found, int) and 0 < found < SCHEMA_VERSION:
        return f"written before ids of points had names of benchmarks ({reads})"
    newer = isinstance(found, int) and found > SCHEMA_VERSION
    return f"written by {'a newer' if newer else 'another'} orbax-bench ({reads})"


def refuse_other_version(data: bytes, file: str) -> None:
    """Refuses a record of another schema version; the message names `file`."""
    said = other_version(data)
    if said:
        advice = "measure again in another output directory"
        if "newer" in said:
            advice = f"upgrade orbax-bench, or {advice}"
        raise UserError(Problem(f"{said}: {advice}", file=file))


def _version(data: bytes) -> object:
    first = _FIRST_KEY.match(data)
    if first is not None:
        return int(first.group(1))
    content = _json(data)
    return content.get("schema_version") if isinstance(content, dict) else None


def _json(data: bytes) -> object:
    """Returns what JSON says; None where it is none, or nested deeper than anything of ours."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
