"""Temporary files and folders: named after their process, and deleted once it is gone."""

import contextlib
import functools
import hashlib
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_OURS: Final = re.compile(
    r".*\.(?P<machine>[0-9a-f]{12})-(?P<pid>\d+)-(?P<since>\d*)\.(?P<word>[0-9a-z_]{8})(\.tmp|\.log)?"
)
_MEANT: Final = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{12}-\d+-\d*\.[0-9a-z_]{8}\.tmp")
_FORGOTTEN_S: Final = 24 * 3600.0
"""Seconds after which what a process of another machine has left is taken for abandoned."""


_written_to: Final[set[str]] = set()
"""Folders in which this process has written."""


def temporary_name(name: str) -> str:
    """Returns the name of a file, beside one of this name, that is not written in full yet."""
    return f".{name}.{_owner(os.getpid())}.{os.urandom(4).hex()}.tmp"


def meant_name(name: str) -> str:
    """Returns the name that a temporary file was to get; that of any other file as it is."""
    temporary = _MEANT.fullmatch(name)
    return name if temporary is None else temporary["name"]


def is_abandoned(path: Path) -> bool:
    """Returns whether a temporary file or folder is that of a process which is gone."""
    match = _OURS.fullmatch(path.name)
    if match is None:
        return False
    if match["machine"] == _machine():
        return is_gone(int(match["pid"]), match["since"])
    try:
        return time.time() - path.stat().st_mtime > _FORGOTTEN_S
    except OSError:
        return False


def sweep_once(folder: str, *, new: bool = False) -> None:
    """Deletes what killed writers have left in a folder, the first time that it is asked."""
    if folder in _written_to:
        return
    _written_to.add(folder)
    if not new:
        with contextlib.suppress(OSError):
            _sweep(folder, ".")


def clear_own() -> None:
    """Deletes files that this process was writing, or was deleting, when it was told to end."""
    own = f".{_owner(os.getpid())}."
    for folder in list(_written_to):
        with contextlib.suppress(OSError):
            for path in Path(folder).iterdir():
                if own in path.name and path.name.endswith(".tmp"):
                    path.unlink(missing_ok=True)


@contextlib.contextmanager
def scratch_folder(kind: str) -> Iterator[Path]:
    """Makes a temporary folder, and deletes those that dead processes have left."""
    path = new_scratch_folder(kind)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def new_scratch_folder(kind: str) -> Path:
    """Makes a folder for what outlives this process only by accident; see `scratch_folder`."""
    return Path(tempfile.mkdtemp(prefix=_prefix(kind)))


def new_scratch_file(kind: str) -> Path:
    """Makes an empty file, which a message may name; it goes once its process is gone, too."""
    descriptor, name = tempfile.mkstemp(prefix=_prefix(kind), suffix=".log")
    os.close(descriptor)
    return Path(name)


def _prefix(kind: str) -> str:
    with contextlib.suppress(OSError):
        _sweep(tempfile.gettempdir(), kind)
    return f"{kind}.{_owner(os.getpid())}."


def _sweep(folder: str, beginning: str) -> None:
    names = os.listdir(folder or ".")  # noqa: PTH208 - a large run has tens of thousands of folders
    for path in [Path(folder, name) for name in names if name.startswith(beginning)]:
        if is_abandoned(path):
            with contextlib.suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@functools.cache
def _owner(pid: int) -> str:
    return f"{_machine()}-{pid}-{started(pid)}"


@functools.cache
def _machine() -> str:
    return hashlib.sha256(this_machine().encode()).hexdigest()[:12]


def machine_id() -> str:
    """Returns an id that all containers of this machine share, and no other machine has."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()


@functools.cache
def this_machine() -> str:
    """Returns an id of this boot and process namespace."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


def started(pid: int) -> str:
    """Returns when a process started, in the kernel's ticks; empty when that cannot be known."""
    try:
        # The name of a process, in parentheses, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # A process that has ended, and whose parent has not asked for it, is gone.
    return "" if fields[0] in "ZX" else fields[19]


def is_gone(pid: int, since: str) -> bool:
    """Whether a process of this machine, which started at `since`, is not there any more."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return since != started(pid)
