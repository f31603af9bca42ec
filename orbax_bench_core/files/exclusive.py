"""Exclusive creation and compare-and-swap of files, on a local file system and on gs://."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.files.atomic import MAX_BYTES, Bounded, answered, read_at_most, sync
from orbax_bench_core.files.credentials import EMULATOR, check_credentials
from orbax_bench_core.files.temporary import sweep_once, temporary_name

if TYPE_CHECKING:
    from etils import epath

_NO_LINKS: Final = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK)
"""Errors of `link` on a file system without hard links."""

_NO_LOCKS: Final = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF, errno.EINVAL)
"""Errors of `flock` on a file system without locks."""

_LOCK_WAIT_S: Final = 30.0
"""Seconds for which another swap in the same folder is waited for."""
_LOCK_POLL_S: Final = 0.02


def create_exclusively(path: epath.Path, data: bytes) -> bool:
    """Writes `data` to a file that is not there yet, in full or not at all.

    Locally this is `link(2)`, on gs:// a write on condition that there is no such object: of two
    that try at the same time, one succeeds.

    Returns:
        Whether it was created; false if there is a file already.

    Raises:
        OSError: It cannot be written; then nobody knows of it.
    """
    if _remote(path):
        return _upload(path, data, generation=0)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _temporary(target, data) as temporary:
        try:
            # `rename` would replace a file that another process has made meanwhile; `link` fails
            # then.
            os.link(temporary, target)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return _create_without_links(target, data)
    return True


def swap(path: epath.Path, before: bytes, data: bytes) -> bool:
    """Writes `data` in place of a file that holds exactly `before`.

    Locally that is under a lock that all who swap in this folder take, on gs:// on condition that
    the object is the one that was read.

    Returns:
        Whether it was replaced; false if the file has other content, or none, by now.

    Raises:
        OSError: It cannot be written, or another process has held the folder's lock for 30 s.
    """
    if _remote(path):
        found = _download(path)
        if found is None or found[0] != before:
            return False
        return _upload(path, data, generation=found[1])
    target = Path(path)
    # No system call replaces a file only if it has the content that was read.
    with _locked(target.parent), _temporary(target, data) as temporary:
        try:
            if read_at_most(target) != before:
                return False
        except FileNotFoundError:
            return False
        temporary.replace(target)
    return True


def read_if_there(path: epath.Path | str, most: int = MAX_BYTES) -> bytes | None:
    """Returns the content of a file, or None if there is no such file.

    Raises:
        OSError: It is there and cannot be read, is larger than `most` bytes, or is a link to
            nothing: only "not found" means missing.
    """
    if _remote(path):
        bucket, name = _bucket_and_name(path)
        try:
            data: bytes = _answered(lambda: _content(bucket.blob(name), path, most), path)
        except FileNotFoundError:
            return None
        return data
    try:
        return read_at_most(path, most)
    except (FileNotFoundError, NotADirectoryError):
        _refuse_link(path)
        return None


def is_there(path: epath.Path) -> bool:
    """Returns whether there is such a file."""
    try:
        if _remote(path):
            bucket, name = _bucket_and_name(path)
            return bool(_answered(lambda: bucket.blob(name).exists(), path))
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def names_in(folder: epath.Path | str) -> list[str]:
    """Returns the names in a folder, sorted; none when there is no such folder.

    Raises:
        OSError: The folder cannot be listed, or is a file or a link to nothing.
    """
    if not _remote(folder):
        try:
            return sorted(os.listdir(folder))
        except NotADirectoryError:
            if os.path.lexists(folder):
                raise
            return []
        except FileNotFoundError:
            _refuse_link(folder)
            return []
    bucket, prefix = _bucket_and_name(folder)
    pages = _answered(lambda: list(_walk(bucket, f"{prefix}/")), folder)
    return sorted({name for name in pages if name})


def _refuse_link(path: epath.Path | str) -> None:
    """Refuses a link to what is not there, which is no reason to take its place for empty."""
    if Path(path).is_symlink():
        raise OSError(errno.EINVAL, "A link to what is not there", str(path))


def digest(data: bytes) -> str:
    """Returns the SHA-256 of a file's content, in hex."""
    return hashlib.sha256(data).hexdigest()


def _remote(path: epath.Path | str) -> bool:
    return str(path).startswith("gs://")


@contextlib.contextmanager
def _temporary(target: Path, data: bytes) -> Iterator[Path]:
    """Writes `data` to a file beside `target`, which is gone again at the end."""
    sweep_once(str(target.parent))
    temporary = target.with_name(temporary_name(target.name))
    try:
        with temporary.open("wb") as file:
            file.write(data)
            # On the disk before it has its name: after a power cut a name must not lead to an empty
            # file.
            sync(file)
        yield temporary
    finally:
        # What was written, or went wrong, counts; what is left here, the next writer sweeps away.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _create_without_links(target: Path, data: bytes) -> bool:
    """Creates a file where there are no hard links; a crash may leave it torn, which is noticed."""
    try:
        with target.open("xb") as file:
            file.write(data)
    except FileExistsError:
        return False
    return True


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds the lock of a folder; the kernel drops it when its holder ends, however it ends."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + _LOCK_WAIT_S
        while not _lock(descriptor):
            if time.monotonic() > deadline:
                raise OSError(errno.EDEADLK, f"another process holds the lock of {folder}")
            time.sleep(_LOCK_POLL_S)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # Without locks the content is still compared, but two swaps at one moment may both succeed.
        if error.errno not in _NO_LOCKS:
            raise
    return True


# Cloud Storage: gcsfs, which is installed where gs:// is used, brings Google's own client. It is
# the one that writes on conditions, and that never lists from memory.


@functools.cache
def _client(emulator: str) -> Any:
    """Returns the client of Google's servers, or of an emulator: each asks one place for ever."""
    from google.auth import credentials
    from google.cloud import storage

    if emulator:
        anonymous = credentials.AnonymousCredentials()
        return storage.Client(project="emulator", credentials=anonymous)
    check_credentials("gs://")
    return storage.Client()


def _bucket_and_name(path: epath.Path | str) -> tuple[Any, str]:
    bucket, _, name = str(path).removeprefix("gs://").partition("/")
    client = _answered(lambda: _client(os.environ.get(EMULATOR, "")), path)
    return client.bucket(bucket), name


def _walk(bucket: Any, prefix: str) -> Iterator[str]:
    blobs = bucket.client.list_blobs(bucket, prefix=prefix, delimiter="/")
    for blob in blobs:
        yield blob.name.removeprefix(prefix)
    for folder in blobs.prefixes:
        yield folder.removeprefix(prefix).rstrip("/")


def _answered(call: Any, path: epath.Path | str) -> Any:
    """Returns the result of a call to the store; its errors become those of the system."""
    from google.api_core.exceptions import NotFound

    with answered(path):
        try:
            return call()
        except NotFound:
            raise FileNotFoundError(errno.ENOENT, "no such object", str(path)) from None


def _download(path: epath.Path) -> tuple[bytes, int] | None:
    """Returns an object and its generation, or None when there is none."""
    bucket, name = _bucket_and_name(path)

    def read() -> tuple[bytes, int] | None:
        blob = bucket.get_blob(name)
        return None if blob is None else (_content(blob, path), int(blob.generation))

    try:
        found: tuple[bytes, int] | None = _answered(read, path)
    except FileNotFoundError:
        return None
    return found


def _content(blob: Any, path: epath.Path | str, most: int = MAX_BYTES) -> bytes:
    """Returns the content of an object, which is bounded as a file's is."""
    room = Bounded(path, most)
    blob.download_to_file(room)
    return room.getvalue()


def _upload(path: epath.Path, data: bytes, *, generation: int) -> bool:
    """Writes an object on condition that it is of this generation; 0 is one that is not there."""
    from google.api_core.exceptions import PreconditionFailed

    bucket, name = _bucket_and_name(path)

    def write() -> bool:
        try:
            bucket.blob(name).upload_from_string(
                data, content_type="application/json", if_generation_match=generation
            )
        except PreconditionFailed:
            return False
        return True

    written: bool = _answered(write, path)
    return written
