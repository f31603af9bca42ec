"""A folder for the probes' files, gone afterwards whatever happens."""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from orbax_bench_core.config.base import checked_path
from orbax_bench_core.config.errors import SuiteError

if TYPE_CHECKING:
    from etils import epath

_PREFIX = ".orbax-bench-limits-"


def is_remote(path: epath.Path) -> bool:
    """Says whether a path is in an object store."""
    return "://" in str(path)


def existing_directory(path: str) -> epath.Path:
    """Returns the directory that `path` names.

    Args:
        path: A local directory, or a gs:// URI, which always exists.

    Raises:
        SuiteError: There is no such directory, or Orbax cannot write to such a path.
    """
    from etils import epath

    try:
        directory = epath.Path(checked_path(path))
    except ValueError as error:
        raise SuiteError(str(error)) from None
    if not is_remote(directory) and not directory.is_dir():
        found = "is a file" if directory.exists() else "does not exist"
        raise SuiteError(f"{path!r} {found}; give an existing directory or a gs:// URI")
    return directory


@contextlib.contextmanager
def scratch(directory: epath.Path) -> Iterator[epath.Path]:
    """Makes a new folder in `directory`, and removes it with all that is in it at the end.

    Args:
        directory: A local directory or a gs:// URI, where folders come with their first object.

    Raises:
        SuiteError: The directory cannot be written.
    """
    folder = directory / f"{_PREFIX}{uuid.uuid4().hex[:12]}"
    if not is_remote(folder):
        try:
            folder.mkdir()
        except OSError as error:
            raise SuiteError(f"cannot write to {directory}: {error.strerror}") from None
    try:
        yield folder
    finally:
        if not is_remote(folder):
            shutil.rmtree(Path(folder), ignore_errors=True)
        elif folder.exists():
            folder.rmtree()
