"""Inventory: number and sizes of a checkpoint's files, by their kind."""

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Annotated

import pydantic

from orbax_bench_core.files import AnyPath, opened, place
from orbax_bench_core.inventory.layout import ROLES, Kind, Role, holds_only_nodes, kinds_of

SMALL_BYTES = 2**20
"""A data file below this size is small: most storage is far from its best throughput there."""
WARN_SHARE = 0.1
"""From this share of small data files on, an inventory warns."""
WARN_BYTES = 64 * 2**20
"""An inventory with less data than this never warns: its files cannot all be large."""


_Amount = Annotated[int, pydantic.Field(ge=0, le=2**63 - 1)]


class FileCount(pydantic.BaseModel):
    """Number and bytes of some of the files below a directory.

    Attributes:
        files: Number of files.
        num_bytes: Sum of their sizes, in bytes.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    files: _Amount = 0
    num_bytes: _Amount = 0


class Inventory(pydantic.BaseModel):
    """Files below a directory.

    Attributes:
        total_bytes: Sum of file sizes, in bytes.
        file_count: Number of files.
        largest_bytes: Size of the largest file, in bytes.
        kinds: Files by kind, such as `ocdbt_data` or `zarr3_metadata`; only kinds that occur.
        data: Files that hold array values.
        metadata: Files that say where the values are and what they mean.
        other: Files that no checkpoint format is known to write.
        small_data_files: Data files of less than 1 MiB.
        largest_data_bytes: Size of the largest data file, in bytes; 0 without data files.
        smallest_data_bytes: Size of the smallest data file, in bytes; 0 without data files.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    total_bytes: _Amount
    file_count: _Amount
    largest_bytes: _Amount
    kinds: dict[Kind, FileCount] = {}
    data: FileCount = FileCount()
    metadata: FileCount = FileCount()
    other: FileCount = FileCount()
    small_data_files: _Amount = 0
    largest_data_bytes: _Amount = 0
    smallest_data_bytes: _Amount = 0

    @property
    def warning(self) -> str | None:
        """What is wrong with the sizes of data files, where there are 64 MiB; None for nothing."""
        if self.data.num_bytes < WARN_BYTES:
            return None
        share = self.small_data_files / self.data.files
        if share < WARN_SHARE:
            return None
        return (
            f"{self.small_data_files} of {self.data.files} data files ({100 * share:.0f} %) are "
            f"smaller than 1 MiB: use OCDBT or larger chunks, so that storage sees fewer, "
            "larger requests"
        )


def take_inventory(directory: AnyPath) -> Inventory:
    """Counts the files below `directory` and their sizes, by what they are for.

    Args:
        directory: A folder, local or in a bucket, or a single file.

    Returns:
        Bytes and counts of files, by kind and by role. Files that are removed meanwhile do not
        count.
    """
    sizes, paths = files_below(directory)
    kinds = kinds_of(sizes)
    for file, kind in kinds.items():
        if kind == "ocdbt_data" and _is_index(paths[file], sizes[file]):
            kinds[file] = "ocdbt_index"

    def of_role(role: Role) -> list[int]:
        return [size for file, size in sizes.items() if ROLES[kinds[file]] == role]

    data = of_role("data")
    return Inventory(
        total_bytes=sum(sizes.values()),
        file_count=len(sizes),
        largest_bytes=max(sizes.values(), default=0),
        kinds={
            kind: _count(size for file, size in sizes.items() if kinds[file] == kind)
            for kind in ROLES
            if kind in kinds.values()
        },
        data=_count(data),
        metadata=_count(of_role("metadata")),
        other=_count(of_role("other")),
        small_data_files=sum(size < SMALL_BYTES for size in data),
        largest_data_bytes=max(data, default=0),
        smallest_data_bytes=min(data, default=0),
    )


def files_below(
    directory: AnyPath,
) -> tuple[dict[PurePosixPath, int], dict[PurePosixPath, str | os.PathLike[str]]]:
    """Returns the bytes of every file below a directory, by its path in there, and its place.

    Returns:
        Bytes by relative path, and the place of each by the same path. A single file is below
        itself, by its name.
    """
    sizes: dict[PurePosixPath, int] = {}
    paths: dict[PurePosixPath, str | os.PathLike[str]] = {}
    alone = not directory.is_dir() and directory.exists()
    files = iter([(directory.name, str(directory))]) if alone else walk(str(directory), linked=True)
    for name, path in files:
        with contextlib.suppress(FileNotFoundError):  # removed since it was listed
            size, relative = file_size(path), PurePosixPath(name)
            sizes[relative], paths[relative] = size, path
    return sizes, paths


def _is_index(path: str | os.PathLike[str], size: int) -> bool:
    try:
        with opened(str(path)) as file:
            return holds_only_nodes(file, size)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno == errno.EINVAL:  # a pipe, which would be waited for
            return False
        raise


def _count(sizes: Iterable[int]) -> FileCount:
    found = list(sizes)
    return FileCount(files=len(found), num_bytes=sum(found))


def walk(
    folder: str, *, strict: bool = False, linked: bool = False
) -> Iterator[tuple[str, str | os.PathLike[str]]]:
    """Yields each file below a folder: its path in there, with slashes, and where it lies.

    With `linked`, links to folders are followed, but for those to a folder around them. With
    `strict` a folder that cannot be listed is an error; otherwise it is left out, as is one that
    goes away meanwhile.

    Raises:
        OSError: With `strict`, a folder cannot be listed.
    """
    if "://" in folder:
        yield from _remote(folder)
        return

    def refuse(error: OSError) -> None:
        raise error

    told = refuse if strict else None
    for here, folders, names in os.walk(folder, onerror=told, followlinks=linked):
        below = here[len(folder) :].strip("/")
        if linked:
            folders[:] = [each for each in folders if not _leads_around(f"{here}/{each}", folder)]
        for name in names:
            yield f"{below}/{name}" if below else name, f"{here}/{name}"


def _leads_around(child: str, folder: str) -> bool:
    """Says whether a child of a folder, or of one below it, is a link to a folder around it."""
    if not os.path.islink(child):  # noqa: PTH114 - many folders
        return False
    target, above = os.path.realpath(child), os.path.dirname(child)  # noqa: PTH120
    while len(above) >= len(folder) and os.path.realpath(above) != target:
        above = os.path.dirname(above)  # noqa: PTH120
    return len(above) >= len(folder)


def _remote(folder: str) -> Iterator[tuple[str, str | os.PathLike[str]]]:
    from etils import epath

    directory, scheme = place(folder), folder.partition("://")[0]
    for parent, _, names in directory.walk():
        # On object storage epath gives folders without their scheme, as if they were local.
        lost = "://" not in str(parent)
        here = epath.Path(f"{scheme}://{parent}") if lost else parent
        for file in (here / name for name in names):
            yield file.relative_to(directory).as_posix(), file


def file_size(path: str | os.PathLike[str]) -> int:
    """Returns the bytes of a file.

    Raises:
        OSError: It is missing, or its storage does not tell.
    """
    name = os.fspath(path)
    if "://" not in name:
        return os.stat(name).st_size  # noqa: PTH116 - a path object costs as much as the question
    return int(place(name).stat().length)
