"""The machine's measuring lock, which the workers of its holder hold as well."""

import contextlib
import datetime
import errno
import fcntl
import hashlib
import os
import stat
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from orbax_bench_core.errors import UserError, presentable, printable
from orbax_bench_core.execute.command_line import command_line

_SHARED = Path("/tmp")  # noqa: S108 - one place for all users, whatever their TMPDIR
LOCK_FILE = (_SHARED if _SHARED.is_dir() else Path(tempfile.gettempdir())) / "orbax-bench.lock"


_POLL_S = 0.2
_LONGEST_HOLDER = 1000
_LONGEST_SHOWN = 160
"""Characters of a command that are shown: a step of a pipeline has kilobytes."""
_RANGE = struct.Struct("hhqqi4x")
"""Linux's `struct flock`: kind, origin, first byte, bytes, process."""


@contextlib.contextmanager
def measuring_lock(
    waiting: Callable[[str], None], *, lock_file: Path = LOCK_FILE, run: str = ""
) -> Iterator[None]:
    """Holds the machine's measuring lock: two runs at once would spoil each other's numbers.

    Args:
        waiting: Takes a line that says who holds it, once, where it has to be waited for.
        lock_file: The file that is locked; all users of a machine have the same one.
        run: Id of the run; processes of one run share the lock. Empty shares it with nobody.

    Raises:
        UserError: Neither this file nor one of this user's own can be used.
    """
    # The kernel drops the lock when its holder and the workers that this one started have ended,
    # however they end. Processes of one run share it: the one that comes first holds it for all.
    descriptor, ours = _open_usable(lock_file, waiting)
    try:
        told = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if run and _is_held_by(descriptor, run):
                    yield
                    return
                if not told:
                    waiting(_describe_holder(os.pread(descriptor, _LONGEST_HOLDER, 0)))
                    told = True
                time.sleep(_POLL_S)
        if run:
            # A lock of the open file, which workers inherit: one of the process would end with it,
            # or when it closes any descriptor of the file. To read, for another user's file is not
            # open for writing.
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _mark(fcntl.F_RDLCK, run))
        if ours:
            os.ftruncate(descriptor, 0)
            # Process, since when, and its command, as `_describe_holder` reads it.
            said = f"{os.getpid()}\n{time.time():.0f}\n{command_line()}"
            os.pwrite(descriptor, said.encode()[:_LONGEST_HOLDER], 0)
        with shared_with_workers(descriptor):
            yield
    finally:
        os.close(descriptor)


def _describe_holder(written: bytes) -> str:
    """Returns whom a run waits for, and how to go on; earlier releases wrote the process alone."""
    process, since, command = (*written.decode(errors="replace").split("\n", 2), "", "")[:3]
    said = f"waiting: process {printable(process.strip()) or '?'} is measuring on this machine"
    if since.isdecimal() and command:
        began = datetime.datetime.fromtimestamp(int(since)).astimezone()
        shown = presentable(command.strip())
        cut = f"{shown[:_LONGEST_SHOWN]}…" if len(shown) > _LONGEST_SHOWN else shown
        said += f" since {began:%H:%M}: {cut}"
    return f"{said}; --no-lock measures at the same time, and each disturbs the other"


def _mark(kind: int, run: str) -> bytes:
    """Returns a lock on one byte of the file, whose place says which run it is."""
    # The byte is not there and need not be: this is how a holder that may not write to the file of
    # another user, or lives in another container, says what it belongs to.
    place = int.from_bytes(hashlib.sha256(run.encode()).digest()[:7])
    return _RANGE.pack(kind, os.SEEK_SET, place, 1, 0)


def _is_held_by(descriptor: int, run: str) -> bool:
    found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _mark(fcntl.F_WRLCK, run))
    return bool(_RANGE.unpack(found)[0] != fcntl.F_UNLCK)


def _open_usable(lock_file: Path, waiting: Callable[[str], None]) -> tuple[int, bool]:
    """Opens the lock file, or one of this user where somebody has put something else there."""
    try:
        return _open(lock_file)
    except OSError as error:
        reason = error.strerror
    own = lock_file.with_name(f"{lock_file.stem}-{os.getuid()}{lock_file.suffix}")
    try:
        found = _open(own)
    except OSError as error:
        raise UserError(
            f"the lock files {lock_file} ({reason}) and {own} ({error.strerror}) cannot be used: "
            "take them away, or measure with --no-lock"
        ) from None
    waiting(
        f"note: the lock file {lock_file} cannot be used ({reason}), so {own} is; runs of other "
        "users are not held off"
    )
    return found


def _open(lock_file: Path) -> tuple[int, bool]:
    """Opens the lock file; returns whether it may be written, for another user's may not."""
    # Anyone may write to the folder. So no link is followed, nothing but a file is waited for or
    # written to, and not one that has another name as well.
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor, writable = os.open(lock_file, os.O_RDWR | os.O_CREAT | flags, 0o644), True
    except PermissionError:
        descriptor, writable = os.open(lock_file, os.O_RDONLY | flags), False
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a file")
        ours = found.st_uid == os.geteuid()
        if ours and not found.st_mode & stat.S_IROTH:
            os.fchmod(descriptor, 0o644)  # a lock that others cannot open shuts them out
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, writable and found.st_nlink == 1


_HELD: list[int] = []


def held_locks() -> tuple[int, ...]:
    """Returns the descriptors of the locks held now."""
    # A lock is free once all processes that hold it have ended: nobody measures beside an orphan.
    return tuple(_HELD)


@contextlib.contextmanager
def shared_with_workers(descriptor: int) -> Iterator[None]:
    """Has workers that start meanwhile hold a lock, too.

    Args:
        descriptor: That of the open lock file, which workers inherit.
    """
    _HELD.append(descriptor)
    try:
        yield
    finally:
        _HELD.remove(descriptor)
