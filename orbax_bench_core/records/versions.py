"""Schema versions of records: those of other versions and foreign files are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from orbax_bench_core.config import Problem, UserError
from orbax_bench_core.records.record import READABLE

_FIRST_KEY: Final = re.compile(rb'\s*\{\s*"schema_version"\s*:\s*(\d+)\s*[,}]')
"""The version is a record's first key, so that most records need not be parsed to read it."""

_NOT_OURS: Final = (
    "not a record of orbax-bench: give what run-sweep-point wrote, JSON with one record a line, or "
    "a run directory"
)


def refuse_other_version(data: bytes, file: str) -> None:
    """Refuses a record of another schema version; the message names `file`.

    What is no JSON passes: a torn record is a repeat that is to be run again.

    Raises:
        UserError: It has a schema version that this one does not read.
    """
    found = _version(data)
    if found is not None and found not in READABLE:
        message = (
            f"a record of schema version {found!r}; this orbax-bench reads versions "
            f"{' and '.join(map(str, READABLE))}: read it with the release that wrote it, or "
            "measure again into another directory"
        )
        raise UserError(Problem(message, file=file))


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
    try:
        content = json.loads(line)
    except ValueError:
        content = None
    if not isinstance(content, dict) or "point_id" not in content:
        raise UserError(Problem(_NOT_OURS, file=path, line=number))
    refuse_other_version(line, path)


def _version(data: bytes) -> object:
    first = _FIRST_KEY.match(data)
    if first is not None:
        return int(first.group(1))
    try:
        content = json.loads(data)
    except ValueError:
        return None
    return content.get("schema_version") if isinstance(content, dict) else None
