"""Files of bounded size: what others wrote is read up to a limit, and never waited for."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import stat
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, Final

from orbax_bench_core.files.places import place

if TYPE_CHECKING:
    from etils import epath

_CLIENTS: Final = ("aiohttp", "gcsfs", "google", "requests")
"""Packages whose errors are no errors of the system, or have no number."""
_BUSY: Final = (408, 429)
"""Answers of a store that has no time, and refuses nothing."""
MAX_BYTES: Final = 256 * 2**20
"""Bytes of any file that is read as a whole: `run.json` of 100,000 points has 70 MB."""


def read_at_most(path: epath.Path | str, most: int = MAX_BYTES) -> bytes:
    """Returns what a file holds."""
    if "://" in str(path):
        with answered(path), place(path).open("rb") as remote:
            size = getattr(remote, "size", None)
            if isinstance(size, int) and size > most:
                raise _too_large(path, most)  # before all that it may have is fetched
            data: bytes = remote.read(most + 1)
    else:
        data = _local(path, most)
    if len(data) > most:
        raise _too_large(path, most)
    return data


def read_json(path: epath.Path | str, most: int = MAX_BYTES) -> Any:
    """Returns what a file of JSON says."""
    try:
        return json.loads(read_at_most(path, most))
    except RecursionError:
        raise ValueError("brackets too deep in each other") from None


@contextlib.contextmanager
def answered(path: epath.Path | str) -> Iterator[None]:
    """Has what the client of a store raises be an error of the system."""
    try:
        yield
    except Exception as error:
        known = as_system_error(error, str(path))
        if known is None:
            raise
        raise known from error


def as_system_error(error: BaseException, path: str | None = None) -> OSError | None:
    """Returns an error of the client of a store as one of the system; None for any other error."""
    kind, code = type(error).__module__, getattr(error, "code", None)
    if isinstance(error, OSError) and error.errno is None and (trace := error.__traceback__):
        while trace.tb_next is not None:
            trace = trace.tb_next
        # gcsfs raises errors of the system without a number, and of a refusal the word alone.
        kind = trace.tb_frame.f_globals.get("__name__", "")
        code = 403 if str(error).startswith("Forbidden") else code
    if kind.partition(".")[0] not in _CLIENTS:
        return None
    number = errno.EIO
    if isinstance(error, FileNotFoundError):
        number = errno.ENOENT
    elif isinstance(code, int) and 400 <= code < 500 and code not in _BUSY:
        number = errno.EACCES
    return OSError(number, " ".join(str(error).split()), path)


@contextlib.contextmanager
def opened(path: epath.Path | str) -> Iterator[IO[bytes]]:
    """Opens a file of any size, to be read in pieces."""
    if "://" in str(path):
        with answered(path), place(path).open("rb") as remote:
            yield remote
    else:
        _status(path)
        with open(path, "rb") as file:
            yield file


class Bounded(io.BytesIO):
    """Room for what a store sends of an object, whose size is not asked for beforehand."""

    def __init__(self, path: epath.Path | str, most: int = MAX_BYTES) -> None:
        """Makes room for `most` bytes of an object at `path`."""
        super().__init__()
        self._path, self._most = path, most

    def write(self, data: Any, /) -> int:
        """Takes more of the object."""
        if self.tell() + len(data) > self._most:
            raise _too_large(self._path, self._most)
        return super().write(data)


def _too_large(path: epath.Path | str, most: int) -> OSError:
    return OSError(errno.EFBIG, f"Larger than {most:,} bytes, which none is", str(path))


def _status(path: epath.Path | str) -> os.stat_result:
    """Returns the status of a file or folder."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EINVAL, "Neither a file nor a folder", str(path))
    return found


def _local(path: epath.Path | str, most: int) -> bytes:
    """Returns what a local file holds, or one byte more than it may have."""
    found = _status(path)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    # Room for all that it may have, or a file object, would take longer than reading it.
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(opened, min(found.st_size, most) + 1)
    finally:
        os.close(opened)
    if len(data) == found.st_size:
        return data
    with open(path, "rb") as again:  # it grew, or came in parts
        return again.read(most + 1)
