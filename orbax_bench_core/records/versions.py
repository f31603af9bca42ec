"""Schema version of the files of records: which are read, and what is said of all others."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeVar, get_args

import pydantic

from orbax_bench_core.errors import Problem, UserError, listed
from orbax_bench_core.files import ResultModel

SCHEMA_VERSION: Final = 5
"""Version of the layout that is written. It rises with each change of the layout: by this number
alone an earlier release tells a newer file from a damaged one."""
_Read = Literal[3, 4, 5]
"""Versions that are read. Points of version 3 and later have ids by names of benchmarks."""

_FIRST_KEY: Final = re.compile(rb'\s*\{\s*"schema_version"\s*:\s*(\d{1,9})\s*[,}]')
"""The version is a file's first key, so that most files need not be parsed to read it."""
_NEW_KEY: Final = ("extra_forbidden", "unexpected_keyword_argument")
"""Types of pydantic's errors of a key that a model or a dataclass does not have."""
Model = TypeVar("Model", bound=pydantic.BaseModel)


class Versioned(ResultModel):
    """A file of which all layouts have one number: a record, a run's, a capture's.

    Attributes:
        schema_version: Version of this layout.
    """

    schema_version: _Read = SCHEMA_VERSION


class OtherVersion(ValueError):
    """A file is not of a schema version that is read; the text says of which, and what to do."""


def parse(model: type[Model], data: bytes) -> Model:
    """Parses the JSON of a file whose model has a `schema_version`.

    Raises:
        OtherVersion: It is of a version that the model does not read, or has keys that only a newer
            one can know.
        pydantic.ValidationError: It is damaged.
    """
    try:
        return model.model_validate_json(data)
    except pydantic.ValidationError as error:
        check_version(data, get_args(model.model_fields["schema_version"].annotation))
        faults = error.errors()
        # A newer release adds keys, and takes none away.
        if any(each["type"] not in _NEW_KEY for each in faults):
            raise
        keys = listed(dict.fromkeys(".".join(map(str, each["loc"])) for each in faults), 3)
        raise OtherVersion(_newer(f"this one knows no {keys}")) from None


def parsed_file(model: type[Model], data: bytes, file: object) -> Model:
    """Parses a file as `parse` does.

    Raises:
        UserError: It is of another version; the message names `file`.
        pydantic.ValidationError: It is damaged.
    """
    try:
        return parse(model, data)
    except OtherVersion as other:
        raise UserError(Problem(str(other), file=str(file))) from None


def check_version(data: bytes, read: Sequence[int] = get_args(_Read)) -> None:
    """Checks that a file is of one of the versions `read`, without parsing most files of records.

    What is no JSON has no version: a torn record is a repeat that is to be run again.

    Raises:
        OtherVersion: It is of another version.
    """
    found = _version(data)
    if found is None or found in read:
        return
    known = " and ".join(filter(None, (listed(read[:-1]), str(read[-1]))))
    said = f"schema {found!r}; this one reads {known}"
    if isinstance(found, int) and found > max(read):
        raise OtherVersion(_newer(said))
    raise OtherVersion(
        f"written by an earlier orbax-bench, whose layout is not read any more ({said}): measure "
        "again in another output directory"
    )


def _newer(how: str) -> str:
    return f"written by a newer orbax-bench ({how}): upgrade orbax-bench"


def _version(data: bytes) -> Any:
    """Returns the version that JSON says; None if it is no JSON, or too deep for any of ours."""
    first = _FIRST_KEY.match(data)
    if first is not None:
        return int(first.group(1))
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return content.get("schema_version") if isinstance(content, dict) else None
