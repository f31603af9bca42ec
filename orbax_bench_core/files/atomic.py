"""Atomic writes: a file is there in full or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

import pydantic

from orbax_bench_core.files.bounded import answered, read_at_most
from orbax_bench_core.files.places import place
from orbax_bench_core.files.temporary import sweep_once, temporary_name

if TYPE_CHECKING:
    from etils import epath


def write_atomically(path: epath.Path | str, data: bytes, *, durable: bool = True) -> None:
    """Writes `data` to `path`; a crash at any moment leaves the old file or the new one.

    The path is local or gs://, and its parent is created.
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
        if isinstance(error, OSError) and error.filename == temporary:
            error.filename = os.fspath(path)  # a name that nobody has heard of says nothing
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
