"""Schema versions of records: what is said of other versions."""

from __future__ import annotations

import json
import re
from typing import Final

from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.records.record import READABLE

_FIRST_KEY: Final = re.compile(rb'\s*\{\s*"schema_version"\s*:\s*(\d{1,9})\s*[,}]')
"""The version is a record's first key, so that most records need not be parsed to read it."""


def other_version(data: bytes) -> str:
    """Returns what to say of a record of a schema version that is not read; empty for others.

    What is no JSON has no version: a torn record is a repeat that is to be run again.
    """
    found = _version(data)
    if found is None or found in READABLE:
        return ""
    reads = f"this one reads {' and '.join(map(str, READABLE))}"
    if isinstance(found, int) and found > max(READABLE):
        return f"written by a newer orbax-bench (schema {found}; {reads})"
    return f"written by another orbax-bench (schema {found!r}; {reads})"


def refuse_other_version(data: bytes, file: str) -> None:
    """Refuses a record of another schema version; the message names `file`."""
    said = other_version(data)
    if said:
        advice = "upgrade orbax-bench, or choose another output directory and measure again"
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
