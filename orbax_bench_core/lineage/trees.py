"""Files below a folder that is digested; a path that others wrote may name anything."""

from __future__ import annotations

import collections
import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from orbax_bench_core.files import place
from orbax_bench_core.inventory import kinds_of

if TYPE_CHECKING:
    from etils import epath

_MOST_FILES: Final = 1_000_000
"""Files of a folder that is digested: a manifest names any path, such as that of the root."""
_MOST_STRANGE: Final = 2_000
"""Files, those furthest up, of which some are a checkpoint's in any that has more."""
_LEAST_KNOWN: Final = 0.01
"""Share of these: a home has files of such a name as well."""
_MOUNTS: Final = Path("/proc/self/mountinfo")
_MADE_UP: Final = frozenset(
    [
        "binfmt_misc",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "efivarfs",
        "fusectl",
        "mqueue",
        "nsfs",
        "proc",
        "pstore",
        "securityfs",
        "selinuxfs",
        "sysfs",
        "tracefs",
    ]
)
"""File systems whose files the kernel makes as one reads."""

Files = dict[str, "epath.PathLike"]


def files_below(path: str, *, checkpoint: bool = False) -> Files:
    """Returns the files below a folder by their path below it, with slashes.

    Links to folders are not followed, as a walk never does.
    """
    files: Files = {}
    looked = not checkpoint
    for found in _remote(path) if "://" in path else _local(path):
        files |= found
        if len(files) > _MOST_FILES:
            said = f"More than {_MOST_FILES:,} files, which are not digested"
            raise OSError(errno.EFBIG, said, path)
        if not looked and len(files) > _MOST_STRANGE:
            looked = True
            _refuse_strange(files, path)
    return files


def _local(path: str) -> Iterator[Files]:
    """Yields the files of each folder, those furthest up first."""
    if not os.path.isdir(path):  # noqa: PTH112 - a path object costs as much as the question
        return
    if _is_made_up(os.path.realpath(path)):
        raise OSError(errno.EINVAL, "Files that the kernel makes as one reads", path)
    folders = collections.deque([""])
    while folders:
        below, files = folders.popleft(), {}
        with os.scandir(f"{path}/{below}") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{below}{entry.name}/")
                elif entry.is_file():
                    files[f"{below}{entry.name}"] = f"{path}/{below}{entry.name}"
                elif not entry.is_dir():
                    raise OSError(errno.EINVAL, "Neither a file nor a folder", entry.path)
        yield files


def _remote(path: str) -> Iterator[Files]:
    from etils import epath

    directory = place(path)
    scheme = path.partition("://")[0]
    for parent, _, names in directory.walk():
        # On object storage epath gives folders without their scheme, as if they were local.
        lost = "://" not in str(parent)
        folder = epath.Path(f"{scheme}://{parent}") if lost else parent
        yield {
            file.relative_to(directory).as_posix(): file for file in (folder / one for one in names)
        }


def _refuse_strange(files: Iterable[str], path: str) -> None:
    """Ends a walk below what is no checkpoint, such as somebody's home."""
    kinds = kinds_of(map(PurePosixPath, files)).values()
    if sum(kind != "other" for kind in kinds) < _LEAST_KNOWN * len(kinds):
        raise OSError(errno.EINVAL, "No files of a checkpoint", path)


def _is_made_up(folder: str) -> bool:
    """Returns whether a folder lies on a file system of the kernel's own, or has one below it."""
    try:
        lines = _MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:  # no Linux
        return False
    mounts: dict[str, bool] = {}
    for line in lines:
        before, _, after = line.partition(" - ")
        place = before.split()[4].rstrip("/")
        mounts[f"{place}/"] = after.split()[0] in _MADE_UP
    inside = f"{folder.rstrip('/')}/"
    around = max((place for place in mounts if inside.startswith(place)), key=len, default="/")
    below = (mounts[place] for place in mounts if place.startswith(inside))
    return mounts.get(around, False) or any(below)
