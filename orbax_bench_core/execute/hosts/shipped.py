"""Suites that a launcher has sent: a copy in the run directory, what lies beside it archived."""

from __future__ import annotations

import atexit
import enum
import shutil
import tempfile
from pathlib import Path, PurePosixPath

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.hosts.suite_archive import unpack_file


class Shipped(enum.StrEnum):
    """Names in a run directory of what a launcher has sent.

    Attributes:
        FOLDER: Folder that the suite is put into.
        ARCHIVE: Archive of the suite's own folder, which lies beside its copy.
    """

    FOLDER = "suite"
    ARCHIVE = ".orbax-bench-suite.zip"


def unshipped(suite: str) -> str:
    """Returns a local copy of a suite that a launcher has sent, with the files beside it.

    Python imports no module from a bucket, and benchmark classes may lie beside a suite.
    """
    folder, _, name = suite.rpartition("/")
    if PurePosixPath(folder).name != Shipped.FOLDER:
        return suite
    from etils import epath

    archive = epath.Path(folder) / Shipped.ARCHIVE
    try:
        if not archive.exists():
            return suite
        copy = Path(tempfile.mkdtemp(prefix="orbax-bench-suite-"))
        atexit.register(shutil.rmtree, copy, ignore_errors=True)
        unpack_file(archive, copy)
    except Exception as error:  # noqa: BLE001 - every client of a store has its own errors
        raise UserError(
            f"cannot read {archive}: {error}; launch the run again, or name the suite by a path of "
            f"another folder than {Shipped.FOLDER}"
        ) from None
    return str(copy / name)
