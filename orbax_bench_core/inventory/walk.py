"""Files below a folder, local or gs://: one walk for inventories, readers and digests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from orbax_bench_core.files import place

if TYPE_CHECKING:
    from etils import epath


def walk(folder: str, *, strict: bool = False) -> Iterator[tuple[str, epath.PathLike]]:
    """Yields each file below a folder: its path in there, with slashes, and where it lies.

    Links to folders are not followed. With `strict` a folder that cannot be listed is an error;
    otherwise it is left out, as is one that goes away meanwhile.
    """
    if "://" in folder:
        yield from _remote(folder)
        return

    def refuse(error: OSError) -> None:
        raise error

    for here, _, names in os.walk(folder, onerror=refuse if strict else None):
        below = here[len(folder) :].strip("/")
        for name in names:
            yield f"{below}/{name}" if below else name, f"{here}/{name}"


def _remote(folder: str) -> Iterator[tuple[str, epath.PathLike]]:
    from etils import epath

    directory, scheme = place(folder), folder.partition("://")[0]
    for parent, _, names in directory.walk():
        # On object storage epath gives folders without their scheme, as if they were local.
        lost = "://" not in str(parent)
        here = epath.Path(f"{scheme}://{parent}") if lost else parent
        for file in (here / name for name in names):
            yield file.relative_to(directory).as_posix(), file


def file_size(path: epath.PathLike) -> int:
    """Returns the bytes of a file."""
    name = os.fspath(path)
    if "://" not in name:
        return os.stat(name).st_size  # noqa: PTH116 - a path object costs as much as the question
    return int(place(name).stat().length)
