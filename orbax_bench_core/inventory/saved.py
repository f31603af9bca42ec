"""Saved trees: formats, codecs and chunks of their arrays, from metadata without any values."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.files import read_at_most, read_json
from orbax_bench_core.inventory.inventory import Folder, plain
from orbax_bench_core.inventory.layout import TREE, UNFINISHED
from orbax_bench_core.inventory.zarr import read_zarr

if TYPE_CHECKING:
    from etils import epath

_MOST_TREES: Final = 4
_MOST_ARRAYS: Final = 32
"""Options hold for all arrays alike, so that a few of a large tree tell as much as all."""
_DEPTH: Final = 4
_METADATA: Final = ("zarr.json", ".zarray")
_KEY: Final = "array_metadatas"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SavedArray:
    """One array as its Zarr metadata describe it.

    Attributes:
        name: Its key in the store.
        zarr_format: 2 or 3.
        compressor: Name of the codec that compresses it; None without one.
        chunk_bytes: Bytes of the smallest part that can be read alone, before compression.
        whole: Whether that is all that one process writes of it at a time; None where the
            metadata do not say.
        shape: Global shape, in elements.
        dtype: Its dtype, as `jax.numpy` spells it.
    """

    name: str
    zarr_format: int
    shape: tuple[int, ...]
    dtype: str
    compressor: str | None
    chunk_bytes: int
    whole: bool | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SavedTree:
    """One tree that Orbax wrote.

    Attributes:
        path: Where it lies.
        ocdbt: Whether its arrays are in one OCDBT database.
        replica_folders: Whether replicas have written databases of their own.
        array_metadata: Whether Orbax's own metadata of arrays are there.
        arrays: Its first arrays, by name.
    """

    path: str
    ocdbt: bool
    replica_folders: bool
    array_metadata: bool
    arrays: tuple[SavedArray, ...]


def read_saved_trees(directory: epath.Path) -> tuple[SavedTree, ...]:
    """Reads the trees below a directory, up to four; of unfinished saves there are none."""
    found = []
    for folder in _tree_folders(plain(directory), _DEPTH):
        found.append(_read(folder))
        if len(found) == _MOST_TREES:
            break
    return tuple(found)


def _tree_folders(directory: Folder, depth: int) -> Iterator[Folder]:
    if UNFINISHED in directory.name or not directory.is_dir():
        return
    names = _names(directory)
    if not {TREE, "manifest.ocdbt"}.isdisjoint(names) or any(
        (directory / child / name).exists() for child in names[:2] for name in _METADATA
    ):
        yield directory
    elif depth:
        for child in names:
            yield from _tree_folders(directory / child, depth - 1)


def _names(folder: Folder) -> list[str]:
    """Returns the names in a folder, sorted; of a local one without a path for each."""
    if isinstance(folder, Path):
        return sorted(entry.name for entry in os.scandir(folder))
    return sorted(child.name for child in folder.iterdir())


def _read(folder: Folder) -> SavedTree:
    names = _names(folder)
    ocdbt = "manifest.ocdbt" in names
    return SavedTree(
        path=str(folder),
        ocdbt=ocdbt,
        replica_folders=any(name.startswith("ocdbt.process_replica_") for name in names),
        array_metadata=_KEY in names,
        arrays=tuple(_arrays(folder, ocdbt=ocdbt)),
    )


def _arrays(folder: Folder, *, ocdbt: bool) -> Iterator[SavedArray]:
    write_shapes = _write_shapes(folder)
    try:
        found = _in_database(folder) if ocdbt else _in_folders(folder)
        for key, metadata in itertools.islice(found, _MOST_ARRAYS):
            array = _array(key, metadata, write_shapes)
            if array is not None:
                yield array
    except (ValueError, OSError):  # TensorStore's own errors are ValueErrors
        return


def _in_database(folder: Folder) -> Iterator[tuple[str, bytes]]:
    import tensorstore

    spec = {"driver": "ocdbt", "base": store_spec(str(folder))}
    store = tensorstore.KvStore.open(spec).result()
    for key in sorted(key.decode() for key in store.list().result()):
        if key.endswith(_METADATA):
            yield key, store.read(key).result().value


def _in_folders(folder: Folder) -> Iterator[tuple[str, bytes]]:
    # Not by a listing of TensorStore's, which ends the process on an answer that it did not expect
    # from an object store.
    for child in _names(folder):
        for name in _METADATA:
            file = folder / child / name
            if file.exists():
                yield f"{child}/{name}", read_at_most(file)


def store_spec(folder: str) -> dict[str, str]:
    """Returns a folder, local or gs://, as TensorStore has a key-value store."""
    if folder.startswith("gs://"):
        bucket, _, path = folder.removeprefix("gs://").partition("/")
        return {"driver": "gcs", "bucket": bucket, "path": f"{path}/"}
    return {"driver": "file", "path": f"{folder}/"}


def _array(key: str, metadata: bytes, write_shapes: Mapping[str, Any]) -> SavedArray | None:
    """Returns what the metadata say; None where they are not of an array as Orbax writes it."""
    name = key.rpartition("/")[0]
    try:
        found = read_zarr(metadata)
    except ValueError:
        return None
    return SavedArray(
        name=name,
        zarr_format=found.zarr_format,
        shape=found.shape,
        dtype=found.dtype,
        compressor=found.compressor,
        chunk_bytes=found.chunk_bytes,
        whole=write_shapes[name] == list(found.chunk_shape) if name in write_shapes else None,
    )


def _write_shapes(folder: Folder) -> dict[str, Any]:
    """Returns the shape that each array is written in, by name, as Orbax's metadata say it."""
    place = folder / _KEY
    for name in _names(place) if place.is_dir() else []:
        if not name.startswith("process_"):
            continue
        try:
            file = place / name
            found = [entry["array_metadata"] for entry in read_json(file)[_KEY]]
            return {array["param_name"]: array["write_shape"] for array in found}
        except (ValueError, KeyError, TypeError):
            return {}
    return {}
