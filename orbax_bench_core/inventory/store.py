"""Store of a checkpoint: place and size of every chunk, and the Zarr metadata of each array."""

import contextlib
import dataclasses
import errno
import functools
import json
import math
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from orbax_bench_core.config import BITS, canonical
from orbax_bench_core.files import MAX_BYTES, AnyPath, opened, read_at_most
from orbax_bench_core.inventory.layout import ARRAY_FILES

_MANIFEST: Final = PurePosixPath("manifest.ocdbt")
_PLACES: Final = re.compile(r" \[(?:source locations|tensorstore_spec)=")
_MOST_READ: Final = 2**24
"""Bytes of the metadata of an array."""


class StoreError(Exception):
    """The store cannot be listed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Chunk:
    """The value of one key; its file lies below the item, empty for a value in a B-tree node."""

    key: str
    num_bytes: int
    file: str
    read: Callable[[], bytes] = dataclasses.field(repr=False, compare=False)


def read_store(
    folder: AnyPath, sizes: Mapping[PurePosixPath, int], *, ocdbt: bool
) -> tuple[dict[str, Chunk], list[str]]:
    """Lists the keys of a store.

    Args:
        folder: Folder of the tree.
        sizes: Bytes of each file below it.
        ocdbt: Whether its arrays lie in OCDBT databases.

    Returns:
        Place of each key, and the files of a database that are missing or cut short, a line each.

    Raises:
        StoreError: The database cannot be read.
    """
    if not ocdbt:
        return _in_folders(folder, sizes), []
    if sizes.get(_MANIFEST, 0) > MAX_BYTES:
        raise StoreError(f"{_MANIFEST} is larger than {MAX_BYTES:,} bytes, which none is")
    _refuse_pipes(folder, sizes)
    keys = dict(_in_database(folder))
    return keys, _lost(keys, sizes)


def _refuse_pipes(folder: AnyPath, files: Iterable[PurePosixPath]) -> None:
    """Refuses a database with a file that is none: TensorStore would wait for a pipe."""
    if "://" in str(folder):
        return
    for file in files:
        with contextlib.suppress(OSError):
            if not stat.S_ISREG(Path(folder / str(file)).stat().st_mode):
                raise StoreError(f"{file} is no file")


def _in_folders(folder: AnyPath, sizes: Mapping[PurePosixPath, int]) -> dict[str, Chunk]:
    arrays = {file.parent for file in sizes if file.name in ARRAY_FILES}
    return {
        file.as_posix(): Chunk(
            file.as_posix(), size, file.as_posix(), functools.partial(read_at_most, folder / file)
        )
        for file, size in sizes.items()
        if any(parent in arrays for parent in file.parents)
    }


def _in_database(folder: AnyPath) -> Iterator[tuple[str, Chunk]]:
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
        # Places in TensorStore's source follow the reason.
        raise StoreError(_PLACES.split(str(error).splitlines()[0])[0][:300]) from None


def _in_node(folder: AnyPath, base: Any, location: str) -> Iterator[tuple[str, Chunk]]:
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


def _indirect(folder: AnyPath, key: str, reference: str) -> Chunk:
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


_COMPRESSORS: Final = ("zstd", "gzip", "blosc")
_KINDS: Final = {"f": "float", "i": "int", "u": "uint", "c": "complex", "b": "bool"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ZarrArray:
    """Metadata of an array, from `zarr.json` or `.zarray`; shapes are in elements.

    A chunk is the smallest part that can be read alone, an object what one key of the store holds.
    """

    zarr_format: int
    shape: tuple[int, ...]
    dtype: str
    itemsize: int
    chunk_shape: tuple[int, ...]
    object_shape: tuple[int, ...]
    compressor: str | None

    @property
    def num_bytes(self) -> int:
        """Bytes of all values."""
        return math.prod(self.shape) * self.itemsize

    @property
    def num_objects(self) -> int:
        """Keys of the store that hold values."""
        pairs = zip(self.shape, self.object_shape, strict=True)
        return math.prod(math.ceil(size / part) for size, part in pairs)

    @property
    def chunk_bytes(self) -> int:
        """Bytes of the values of one chunk, before compression."""
        return math.prod(self.chunk_shape) * self.itemsize


def read_zarr(text: bytes | str) -> ZarrArray:
    """Reads the metadata of one array.

    Raises:
        ValueError: It is no metadata of an array in Zarr 2 or 3.
    """
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("brackets too deep in each other") from None
    try:
        return _array(found)
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"it does not describe an array ({error!r})") from None


def _array(found: dict[str, Any]) -> ZarrArray:
    if found["zarr_format"] == 2:
        version, whole, name = 2, tuple(found["chunks"]), found["dtype"]
        chunk, compressor = whole, found["compressor"]
        compressor = None if compressor is None else str(compressor["id"])
    else:
        version, name, codecs = 3, found["data_type"], found["codecs"]
        whole = chunk = tuple(found["chunk_grid"]["configuration"]["chunk_shape"])
        if codecs[0]["name"] == "sharding_indexed":
            inner = codecs[0]["configuration"]
            chunk, codecs = tuple(inner["chunk_shape"]), inner["codecs"]
        compressor = next((c["name"] for c in codecs if c["name"] in _COMPRESSORS), None)
    dtype, itemsize = _dtype(str(name))
    return ZarrArray(
        zarr_format=version,
        shape=tuple(found["shape"]),
        dtype=dtype,
        itemsize=itemsize,
        chunk_shape=chunk,
        object_shape=whole,
        compressor=compressor,
    )


def _dtype(name: str) -> tuple[str, int]:
    """Returns a dtype as `jax.numpy` spells it, and the bytes of an element."""
    if name[:1] in "<>|" and name[1:2] in _KINDS and name[2:].isdecimal():
        size = int(name[2:])
        kind = _KINDS[name[1]]
        return (kind if kind == "bool" else f"{kind}{8 * size}"), size
    known = canonical(name)
    if known is None:
        raise ValueError(f"its dtype {name!r} is not known")
    return known, BITS[known] // 8
