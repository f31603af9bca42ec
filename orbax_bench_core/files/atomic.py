"""Files read up to a limit and never waited for, and written in full or not at all."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, Final

import pydantic

from orbax_bench_core.files.places import place
from orbax_bench_core.files.temporary import sweep_once, temporary_name

if TYPE_CHECKING:
    from etils import epath


def write_atomically(path: epath.Path | str, data: bytes, *, durable: bool = True) -> None:
    """Writes `data` to `path`; a crash at any moment leaves the old file or the new one.

    The path is local or gs://, and its parent is created.

    Args:
        path: The file.
        data: All that it holds.
        durable: Whether the data are on the disk when this returns (`fsync`), so that a crash of
            the machine leaves one of the two as well.

    Raises:
        OSError: It cannot be written.
    """
    if "://" in str(path):
        # An object store shows an object once it is complete.
        with answered(path):
            _with_folder(path).write_bytes(data)
        return
    with atomic_file(path, durable=durable) as file:
        file.write(data)


def write_if_changed(path: str, data: bytes) -> None:
    """Writes what can be made again, as `write_atomically` does, unless the file holds just that.

    Who makes all files of a large run again finds most of them as they are to be, and reading one
    takes a tenth of the time of replacing it.
    """
    if "://" not in path:
        folder = os.path.dirname(path)
        made = _made(folder)
        sweep_once(folder, new=made)
        if not made:
            with contextlib.suppress(OSError):  # there is none, or one that is to be replaced
                if read_at_most(path, len(data)) == data:
                    return
    write_atomically(path, data, durable=False)


def _made(folder: str) -> bool:
    """Returns whether a folder was made, with those above it; False where it is there already."""
    try:
        os.mkdir(folder)
    except FileExistsError:
        return False
    except FileNotFoundError:
        above = os.path.dirname(folder)
        if above in ("", folder):
            raise
        _made(above)
        with contextlib.suppress(FileExistsError):  # somebody was faster
            os.mkdir(folder)
    return True


@contextlib.contextmanager
def atomic_file(path: epath.Path | str, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Opens a file that takes the place of `path` once everything is written to it.

    The path is local or gs://, and its parent is created. `durable` is that of `write_atomically`.
    """
    if "://" in str(path):
        with tempfile.TemporaryFile() as local:
            yield local
            local.seek(0)
            with answered(path), _with_folder(path).open("wb") as remote:
                shutil.copyfileobj(local, remote)
        return
    _check_replaceable(os.fspath(path))
    folder, name = os.path.split(os.fspath(path))
    sweep_once(folder)
    temporary = os.path.join(folder, temporary_name(name))
    try:
        with _created(temporary) as file:
            yield file
            if durable:
                sync(file)
        os.replace(temporary, path)
    except BaseException as error:
        # A name that nobody has heard of says nothing, and a full disk names no file.
        if isinstance(error, OSError) and error.errno and error.filename in (None, temporary):
            error.filename = os.fspath(path)
        with contextlib.suppress(OSError):  # what went wrong first counts
            os.unlink(temporary)
        raise


def _check_replaceable(path: str) -> None:
    """Checks that no device, pipe or link of the machine's would be gone: root may replace them."""
    try:
        kind = os.stat(path).st_mode
    except OSError:  # there is none, or the write will tell
        return
    # `/dev/stdout` is a link, and may lead to a file.
    system = os.path.abspath(path).startswith("/dev/") and os.path.islink(path)
    if system or not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        said = "A device, pipe or socket, which no file takes the place of; name a file"
        raise OSError(errno.EEXIST, said, path)


def _with_folder(path: epath.Path | str) -> epath.Path:
    """Returns a path of an object store whose folder is there."""
    found = place(path)
    found.parent.mkdir(parents=True, exist_ok=True)
    return found


def _created(path: str) -> IO[bytes]:
    """Opens a new file for writing; its folder is created where it is missing."""
    try:
        return open(path, "wb")
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "wb")


def sync(file: IO[bytes]) -> None:
    """Has what was written to a file survive a power cut."""
    file.flush()
    os.fsync(file.fileno())


class ResultModel(pydantic.BaseModel):
    """A block of a file. Values that JSON lacks (NaN, infinities) are kept as words."""

    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, ser_json_inf_nan="strings", arbitrary_types_allowed=True
    )


_CLIENTS: Final = ("aiohttp", "gcsfs", "google", "requests")
"""Packages whose errors are no errors of the system, or have no number."""
_BUSY: Final = (408, 429)
"""Answers of a store that has no time, and refuses nothing."""
MAX_BYTES: Final = 256 * 2**20
"""Bytes of any file that is read as a whole: `run.json` of 100,000 points has 70 MB."""


def read_at_most(path: epath.Path | str, most: int = MAX_BYTES) -> bytes:
    """Returns the content of a file.

    Args:
        path: The file, local or gs://.
        most: Bytes that it may have: nothing larger is held in memory.

    Raises:
        OSError: It is missing, larger, or cannot be read.
    """
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
    """Returns the parsed JSON of a file.

    Raises:
        OSError: As `read_at_most`.
        ValueError: It is no JSON.
    """
    try:
        return json.loads(read_at_most(path, most))
    except RecursionError:
        raise ValueError("brackets too deep in each other") from None


@contextlib.contextmanager
def answered(path: epath.Path | str) -> Iterator[None]:
    """Has what the client of a store raises be an error of the system.

    Raises:
        OSError: The client raised one of its own errors; any other error passes as it is.
    """
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
    """Opens a file of any size, to be read in pieces.

    Raises:
        OSError: It is missing, is neither a file nor a folder, or cannot be read.
    """
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
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EINVAL, "Neither a file nor a folder", str(path))
    return found


def _local(path: epath.Path | str, most: int) -> bytes:
    """Returns the content of a local file, or one byte more than it may have."""
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
