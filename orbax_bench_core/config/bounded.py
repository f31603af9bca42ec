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


def read_at_most(path: epath.Path, most: int = MAX_BYTES) -> bytes:
    """Returns what a file holds.

    Args:
        path: Local or gs://.
        most: Bytes that it may have.

    Raises:
        OSError: It cannot be read, is larger (`EFBIG`), or is no file: a pipe would be waited for,
            and a device has no end.
    """
    if "://" not in str(path):
        mode = os.stat(path).st_mode  # noqa: PTH116 - a path of epath
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise OSError(errno.EINVAL, "Neither a file nor a folder", str(path))
    with path.open("rb") as file:
        data: bytes = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"Larger than {most:,} bytes, which none is", str(path))
    return data
