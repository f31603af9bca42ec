"""Schema versions of records: what is said of other versions and of foreign files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from orbax_bench_core.config import Problem, UserError
from orbax_bench_core.records.record import READABLE

_FIRST_KEY: Final = re.compile(rb'\s*\{\s*"schema_version"\s*:\s*(\d{1,9})\s*[,}]')
"""The version is a record's first key, so that most records need not be parsed to read it."""

_NOT_OURS: Final = (
    "not a record of orbax-bench: give what run-sweep-point wrote, JSON with one record a line, or "
    "a run directory"
)


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
    """Refuses a record of another schema version; the message names `file`.

    Raises:
        UserError: It has a schema version that this one does not read.
    """
    said = other_version(data)
    if said:
        advice = "upgrade orbax-bench, or choose another output directory and measure again"
        raise UserError(Problem(f"{said}: {advice}", file=file))


def checked_record_files(paths: Iterable[str]) -> Iterator[str]:
    """Yields files of records as JSON lines, each once all of it can be read.

    Raises:
        UserError: A file is missing, is not ours, or is of another schema version.
    """
    for path in paths:
        try:
            with Path(path).open("rb") as file:
                for number, line in enumerate(file, 1):
                    _check_line(line, path, number)
        except OSError as error:
            raise UserError(Problem(f"cannot be read: {error}", file=path)) from None
        yield path


def _check_line(line: bytes, path: str, number: int) -> None:
    content = _json(line)
    if not isinstance(content, dict) or "point_id" not in content:
        raise UserError(Problem(_NOT_OURS, file=path, line=number))
    refuse_other_version(line, path)


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
