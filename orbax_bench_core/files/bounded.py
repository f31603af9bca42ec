"""Files of bounded size: what others wrote is read up to a limit, and never waited for."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from etils import epath

MAX_BYTES: Final = 256 * 2**20
"""Bytes of any file that is read as a whole: `run.json` of 100,000 points has 70 MB."""


def read_at_most(path: epath.Path | str, most: int = MAX_BYTES) -> bytes:
    """Returns what a file holds.

    Args:
        path: Local or gs://.
        most: Bytes that it may have.

    Raises:
        OSError: It cannot be read, is larger (`EFBIG`), or is no file: a pipe would be waited for,
            and a device has no end.
    """
    if "://" in str(path):
        from etils import epath

        with epath.Path(path).open("rb") as remote:
            data: bytes = remote.read(most + 1)
    else:
        data = _local(path, most)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"Larger than {most:,} bytes, which none is", str(path))
    return data


def _local(path: epath.Path | str, most: int) -> bytes:
    """Returns what a local file holds, or one byte more than it may have."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EINVAL, "Neither a file nor a folder", str(path))
    with open(path, "rb") as file:
        # Room for all that it may have would take longer than reading what it has.
        data = file.read(min(found.st_size, most) + 1)
        return data + file.read(most + 1 - len(data)) if len(data) > found.st_size else data
