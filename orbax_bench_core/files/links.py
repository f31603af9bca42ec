"""Links below a run directory: nothing is written or removed through one."""

from __future__ import annotations

import errno
import os
import shutil
from typing import Final

from orbax_bench_core.files.places import AnyPath

_SAID: Final = (
    "A link, through which nothing is written or removed; remove it, and name another disk as the "
    "run directory itself or by `storage` of the suite"
)


def refuse_links(path: AnyPath | str, root: AnyPath | str) -> None:
    """Refuses a path that a link below `root` may lead anywhere.

    `root` itself may be a link, or lie behind one: somebody has named it. Cloud Storage has none.

    Raises:
        OSError: A link lies below `root` (ELOOP).
    """
    way, top = os.fspath(path), os.fspath(root).rstrip("/")
    if "://" in way:
        return
    for part in way.removeprefix(f"{top}/").split("/"):
        top = f"{top}/{part}"
        if os.path.islink(top):
            raise OSError(errno.ELOOP, _SAID, top)


def remove_tree(path: AnyPath, root: AnyPath | str) -> None:
    """Removes what is at a path below `root`: a folder with all in it, or a link, not its end."""
    local = os.fspath(path)
    if "://" in local:
        if path.exists():
            path.rmtree()
        return
    refuse_links(os.path.dirname(local), root)
    if os.path.islink(local):
        os.unlink(local)
    elif os.path.exists(local):
        shutil.rmtree(local)
