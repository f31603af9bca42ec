"""Keys of a checkpoint's store: place and size of every chunk, in OCDBT or in folders."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.files import MAX_BYTES, opened, read_at_most
from orbax_bench_core.inventory.layout import ARRAY_FILES

if TYPE_CHECKING:
    from etils import epath


_MANIFEST: Final = PurePosixPath("manifest.ocdbt")
_MOST_READ: Final = 2**24
"""Bytes of the metadata of an array."""


class StoreError(Exception):
    """The store cannot be listed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Chunk:
    """The value of one key.

    Attributes:
        key: The key.
        num_bytes: Its bytes on storage.
        file: The file that holds it, below the item; empty for a value in a B-tree node.
        read: Reads it; used for metadata alone.
    """

    key: str
    num_bytes: int
    file: str
    read: Callable[[], bytes] = dataclasses.field(repr=False, compare=False)


def read_store(
    folder: epath.Path, sizes: Mapping[PurePosixPath, int], *, ocdbt: bool
) -> tuple[dict[str, Chunk], list[str]]:
    """Lists the keys of a store."""
    if not ocdbt:
        return _in_folders(folder, sizes), []
    if sizes.get(_MANIFEST, 0) > MAX_BYTES:
        raise StoreError(f"{_MANIFEST} is larger than {MAX_BYTES:,} bytes, which none is")
    _refuse_pipes(folder, sizes)
    keys = dict(_in_database(folder))
    return keys, _lost(keys, sizes)


def _refuse_pipes(folder: epath.Path, files: Iterable[PurePosixPath]) -> None:
    """Refuses a database with a file that is none: TensorStore would wait for a pipe."""
    if "://" in str(folder):
        return
    for file in files:
        with contextlib.suppress(OSError):
            if not stat.S_ISREG(Path(folder / str(file)).stat().st_mode):
                raise StoreError(f"{file} is no file")


def _in_folders(folder: epath.Path, sizes: Mapping[PurePosixPath, int]) -> dict[str, Chunk]:
    arrays = {file.parent for file in sizes if file.name in ARRAY_FILES}
    return {
        file.as_posix(): Chunk(
            file.as_posix(), size, file.as_posix(), functools.partial(read_at_most, folder / file)
        )
        for file, size in sizes.items()
        if any(parent in arrays for parent in file.parents)
    }


def _in_database(folder: epath.Path) -> Iterator[tuple[str, Chunk]]:
    """Yields the keys of an OCDBT database from its B-tree, which holds the size of each value."""
    import tensorstore

    try:
        base = tensorstore.KvStore.open(store_spec(str(folder))).result()
        manifest = tensorstore.ocdbt.dump(base).result()
        versions = manifest["versions"]
        root = versions[-1]["root"].get("location") if versions else None
        if root is not None:
            yield from _in_node(folder, base, root)
    except (ValueError, KeyError, OSError) as error:  # TensorStore's own errors are ValueErrors
        raise StoreError(_first_line(error)) from None


def _in_node(folder: epath.Path, base: Any, location: str) -> Iterator[tuple[str, Chunk]]:
    import tensorstore

    for entry in tensorstore.ocdbt.dump(base, location).result()["entries"]:
        if "location" in entry:
            yield from _in_node(folder, base, entry["location"])
            continue
        key = entry["key"].decode()
        if "inline_value" in entry:
            value = bytes(entry["inline_value"])
            yield key, Chunk(key, len(value), "", functools.partial(bytes, value))
        else:
            yield key, _indirect(folder, key, entry["indirect_value"])


def _indirect(folder: epath.Path, key: str, reference: str) -> Chunk:
    """Returns a value that lies in a data file: `value:<folder>:<file>:<offset>:<length>`."""
    place, offset, length = reference.removeprefix("value:").rsplit(":", 2)
    file = place.replace(":", "")

    def read() -> bytes:
        if int(length) > _MOST_READ:
            raise OSError(errno.EFBIG, f"Larger than {_MOST_READ:,} bytes, which no metadata are")
        with opened(folder / file) as stream:
            stream.seek(int(offset))
            return bytes(stream.read(int(length)))

    return Chunk(key, int(length), f"{file}@{offset}", read)


def store_spec(folder: str) -> dict[str, str]:
    """Returns a folder, local or gs://, as TensorStore has a key-value store."""
    if folder.startswith("gs://"):
        bucket, _, path = folder.removeprefix("gs://").partition("/")
        return {"driver": "gcs", "bucket": bucket, "path": f"{path}/"}
    return {"driver": "file", "path": f"{folder}/"}


def _lost(keys: Mapping[str, Chunk], sizes: Mapping[PurePosixPath, int]) -> list[str]:
    """Returns the data files that values point into and that are not there, or too short."""
    needed: dict[str, int] = {}
    values: dict[str, int] = {}
    for chunk in keys.values():
        if chunk.file:
            file, _, offset = chunk.file.rpartition("@")
            needed[file] = max(needed.get(file, 0), int(offset) + chunk.num_bytes)
            values[file] = values.get(file, 0) + 1
    found = []
    for file, end in sorted(needed.items()):
        size = sizes.get(PurePosixPath(file))
        if size is None:
            found.append(f"{file} is missing, with {values[file]} chunks")
        elif size < end:
            found.append(f"{file} is cut short: {size} of {end} bytes, with {values[file]} chunks")
    return found


def _first_line(error: Exception) -> str:
    """Returns the reason without the places in TensorStore's source that follow it."""
    return str(error).splitlines()[0].partition(" [")[0][:300]
