"""Base model of the suite file's blocks, and the check of a path that a suite names."""

from __future__ import annotations

from pathlib import Path

import pydantic

_REMOTE = "gs://"


def checked_path(path: str) -> str:
    """Returns `path` in full: a local path is made absolute, a `gs://` URI stays.

    Raises:
        ValueError: The path is empty, or the URI has a scheme that Orbax cannot write to.
    """
    if not path.strip():
        raise ValueError("the path is empty; name a directory, `.` for the one that this runs in")
    if path.startswith(_REMOTE):
        return path.rstrip("/")
    scheme, separator, rest = path.partition("://")
    if separator and scheme == "file":
        path = rest
    elif separator:
        raise ValueError(
            f"cannot use {path!r}: Orbax reads and writes local paths and gs:// only, and would "
            f"put {scheme}:// data into a local folder of that name without saying so"
        )
    return str(Path(path).expanduser().absolute())


class ConfigModel(pydantic.BaseModel):
    """A block of the suite file.

    Unknown keys and wrong types are errors: a misspelt key that is silently ignored measures
    something else than what its author believes.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)
