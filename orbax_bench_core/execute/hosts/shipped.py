"""Suites that a launcher has sent: a copy in the run directory, what lies beside it archived."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.hosts.luggage import unpack_file

SHIPPED_FOLDER: Final = "suite"
"""Folder in the run directory that a suite is put into."""
SHIPPED_ARCHIVE: Final = ".orbax-bench-suite.zip"
"""Archive of the suite's folder, which lies beside the copy of the suite."""


def unshipped(suite: str) -> str:
    """Returns a local copy of a suite that a launcher has sent, with the files beside it.

    Python imports no module from a bucket, and benchmark classes may lie beside a suite.

    Args:
        suite: Path or URI of the suite.

    Returns:
        Its copy, which lives as long as this process; `suite` itself where no launcher has sent it.

    Raises:
        UserError: What was sent cannot be read.
    """
    folder, _, name = suite.rpartition("/")
    if PurePosixPath(folder).name != SHIPPED_FOLDER:
        return suite
    from etils import epath

    archive = epath.Path(folder) / SHIPPED_ARCHIVE
    try:
        if not archive.exists():
            return suite
        copy = Path(tempfile.mkdtemp(prefix="orbax-bench-suite-"))
        atexit.register(shutil.rmtree, copy, ignore_errors=True)
        unpack_file(archive, copy)
    except Exception as error:  # noqa: BLE001 - every client of a store has its own errors
        raise UserError(
            f"cannot read {archive}: {error}; launch the run again, or name the suite by a path of "
            f"another folder than {SHIPPED_FOLDER}"
        ) from None
    return str(copy / name)
