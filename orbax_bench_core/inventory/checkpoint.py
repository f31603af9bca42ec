"""Checkpoints as their files tell them: commit, arrays, chunks and what is missing."""

import base64
import binascii
import dataclasses
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from orbax_bench_core.errors import listed
from orbax_bench_core.files import AnyPath, read_json
from orbax_bench_core.inventory import layout
from orbax_bench_core.inventory.inventory import files_below
from orbax_bench_core.inventory.store import Chunk, StoreError, ZarrArray, read_store, read_zarr

_LISTED: Final = 3
_MOST_TREES: Final = 4
_MOST_ARRAYS: Final = 32
_DEPTH: Final = 4
_OF_REPLICA: Final = "ocdbt.process_replica_"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredArray:
    """One array of a checkpoint, or a Python number, as a scalar; None where no metadata say.

    Its name is its key in the store, its path the keys in the tree, where whole numbers are places
    in a list. `write_shape` is what one process wrote at a time; mesh and spec are what it was
    saved from; `chunks` are those found.
    """

    name: str
    path: tuple[str | int, ...] | None
    is_scalar: bool
    zarr: ZarrArray | None
    write_shape: tuple[int, ...] | None
    mesh: Mapping[str, int] | None
    spec: tuple[Any, ...] | None
    chunks: tuple[Chunk, ...]

    @property
    def num_bytes(self) -> int:
        """Bytes of its values; 0 where nothing tells."""
        return 0 if self.zarr is None else self.zarr.num_bytes

    @property
    def stored_bytes(self) -> int:
        """Bytes of its chunks on storage."""
        return sum(chunk.num_bytes for chunk in self.chunks)

    @property
    def is_one_chunk(self) -> bool | None:
        """Whether a chunk is all that one process wrote at a time; None where nothing tells."""
        if self.zarr is None or self.write_shape is None:
            return None
        return self.write_shape == self.zarr.chunk_shape

    @property
    def num_missing(self) -> int:
        """Chunks that its metadata promise and that are not there."""
        return 0 if self.zarr is None else max(0, self.zarr.num_objects - len(self.chunks))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredCheckpoint:
    """One checkpoint."""

    path: str  # what was given
    root: str  # where it begins
    item: str  # name of the item that holds the tree; empty where the root does
    is_committed: bool | None  # whether its save finished; None where nothing tells
    commit: str  # how that is known, or what is missing
    # seconds from the begin of its save to its commit; None where nothing tells
    save_s: float | None
    ocdbt: bool  # whether its arrays are in an OCDBT database
    arrays: tuple[StoredArray, ...]  # its arrays and Python numbers, by name
    strings: tuple[str, ...]  # names of its strings
    sizes: Mapping[PurePosixPath, int]  # bytes of every file, by its path below the root
    processes: int | None  # processes that wrote it; None where nothing tells
    siblings: tuple[str, ...]  # unfinished saves beside it
    problems: tuple[str, ...]  # what is wrong with it, a line each; empty where nothing was found

    @property
    def has_array_metadata(self) -> bool:
        """Whether Orbax's own metadata of arrays are there."""
        return any(file.parent.name == layout.ARRAY_METADATA for file in self.sizes)

    @property
    def has_replica_folders(self) -> bool:
        """Whether replicas have written databases of their own."""
        return any(part.startswith(_OF_REPLICA) for file in self.sizes for part in file.parts)


def read_checkpoint(path: str) -> StoredCheckpoint:
    """Reads what the files of a checkpoint say, without a value of its arrays."""
    root, item = layout.locate(path)
    return _Reader(path, root, item).read()


def read_saved_trees(directory: AnyPath) -> tuple[StoredCheckpoint, ...]:
    """Reads up to four trees below a directory, and 32 arrays of each; no unfinished save.

    Options hold for all arrays alike, so that a few of a large tree tell as much as all.
    """
    folders = itertools.islice(_tree_folders(directory, _DEPTH), _MOST_TREES)
    return tuple(_Reader(str(folder), folder, "", _MOST_ARRAYS).read() for folder in folders)


def _tree_folders(directory: AnyPath, depth: int) -> Iterator[AnyPath]:
    if layout.UNFINISHED in directory.name or not directory.is_dir():
        return
    if layout.is_item(directory):
        yield directory
    elif depth:
        for child in sorted(directory.iterdir()):
            yield from _tree_folders(child, depth - 1)


class _Reader:
    """Reads one checkpoint, and notes what is wrong with it on the way."""

    def __init__(self, path: str, root: AnyPath, item: str, most: int | None = None) -> None:
        self._path, self._root, self._item, self._most = path, root, item, most
        self._folder = root / item if item else root
        self._sizes, _ = files_below(root)
        self._problems: list[str] = []
        self._is_listed = False
        self._told: set[str] = set()
        """Arrays of which a problem says all that there is to say."""

    def read(self) -> StoredCheckpoint:
        root = self._json(self._root / layout.ROOT_FILE, needed=bool(self._item)) or {}
        tree = self._json(self._folder / layout.TREE, needed=True) or {}
        is_committed, commit = self._commit(root)
        ocdbt, keys = self._keys(tree)
        write_shapes, processes = self._write_shapes()
        arrays = self._arrays(tree, keys, write_shapes)
        return StoredCheckpoint(
            path=self._path,
            root=str(self._root),
            item=self._item,
            is_committed=is_committed,
            commit=commit,
            save_s=_duration(root),
            ocdbt=ocdbt,
            arrays=arrays,
            strings=tuple(name for _, name, kind in _leaves(tree) if kind == "string"),
            sizes=self._sizes,
            processes=processes,
            siblings=self._siblings(),
            problems=tuple(self._problems),
        )

    def _json(self, file: AnyPath, *, needed: bool) -> dict[str, Any] | None:
        name = file.relative_to(self._root).as_posix()
        if PurePosixPath(name) not in self._sizes:
            if needed:
                self._problems.append(f"{name} is missing")
            return None
        try:
            found = read_json(file)
        except (ValueError, OSError) as error:
            self._problems.append(f"{name} is damaged: {error}")
            return None
        if not isinstance(found, dict):
            self._problems.append(f"{name} is damaged: it holds {type(found).__name__}, no mapping")
            return None
        return found

    def _commit(self, root: Mapping[str, Any]) -> tuple[bool | None, str]:
        if layout.UNFINISHED in str(self._root):
            self._problems.append(f"its save has not finished: its name has {layout.UNFINISHED}")
            return False, f"no: its name has {layout.UNFINISHED}"
        if PurePosixPath(layout.MARKER_FILE) in self._sizes:
            return True, f"yes: {layout.MARKER_FILE} is there"
        if "://" in str(self._root):
            self._problems.append(f"its save has not finished: {layout.MARKER_FILE} is missing")
            return False, f"no: {layout.MARKER_FILE} is missing, and object storage cannot rename"
        if root.get("commit_timestamp_nsecs"):
            said = f"{layout.ROOT_FILE} has the time of its commit"
            return True, f"yes: {said}, though {layout.MARKER_FILE} is missing"
        return None, f"unknown: neither {layout.MARKER_FILE} nor the time of a commit is there"

    def _siblings(self) -> tuple[str, ...]:
        if "://" in str(self._root):
            return ()  # a bucket may have any number of them
        found = (child.name for child in self._root.parent.iterdir())
        return tuple(sorted(n for n in found if layout.UNFINISHED in n and n != self._root.name))

    def _keys(self, tree: Mapping[str, Any]) -> tuple[bool, dict[str, Chunk]]:
        below = {
            file.relative_to(self._item) if self._item else file: size
            for file, size in self._sizes.items()
            if not self._item or (file.parts[0] == self._item and len(file.parts) > 1)
        }
        has_manifest = PurePosixPath("manifest.ocdbt") in below
        processes = {f.parts[0] for f in below if f.parts[0].startswith("ocdbt.process_")}
        ocdbt = bool(tree.get("use_ocdbt", has_manifest or bool(processes)))
        if ocdbt and not has_manifest:
            advice = (
                "the databases of processes were not merged" if processes else "it has no array"
            )
            self._problems.append(f"{self._below('manifest.ocdbt')} is missing: {advice}")
            return ocdbt, {}
        try:
            keys, wrong = read_store(self._folder, below, ocdbt=ocdbt)
        except StoreError as error:
            self._problems.append(f"its arrays cannot be listed: {error}")
            return ocdbt, {}
        self._is_listed = True
        self._problems.extend(self._below(line) for line in wrong)
        return ocdbt, keys

    def _below(self, name: str) -> str:
        return f"{self._item}/{name}" if self._item else name

    def _write_shapes(self) -> tuple[dict[str, tuple[int, ...]], int | None]:
        found: dict[str, tuple[int, ...]] = {}
        folder = PurePosixPath(self._below(layout.ARRAY_METADATA))
        files = sorted(file for file in self._sizes if file.parent == folder)
        for file in files:
            entries = self._json(self._root / str(file), needed=False)
            try:
                for entry in (entries or {}).get(layout.ARRAY_METADATA, ()):
                    array = entry["array_metadata"]
                    found[array["param_name"]] = tuple(array["write_shape"])
            except (KeyError, TypeError):
                self._problems.append(f"{file} is damaged: it does not describe arrays")
        return found, len(files) or None

    def _shardings(self) -> dict[str, tuple[dict[str, int], tuple[Any, ...]]]:
        found = {}
        shardings = self._json(self._folder / "_sharding", needed=False) or {}
        for key, text in shardings.items():
            try:
                name = base64.urlsafe_b64decode(key).decode()
                sharding = json.loads(text)
                mesh = dict(zip(sharding["axis_names"], sharding["shape"], strict=True))
                entries = sharding["partition_spec"]
                found[name] = mesh, tuple(tuple(e) if isinstance(e, list) else e for e in entries)
            except (ValueError, KeyError, TypeError, binascii.Error):
                continue  # of one device, or of a kind that Orbax does not describe so
        return found

    def _arrays(
        self,
        tree: Mapping[str, Any],
        keys: Mapping[str, Chunk],
        write_shapes: Mapping[str, tuple[int, ...]],
    ) -> tuple[StoredArray, ...]:
        zarrs = self._zarrs(keys)
        leaves = {name: (path, kind) for path, name, kind in _leaves(tree) if kind != "string"}
        shardings = self._shardings()
        chunks = _chunks(keys, {*zarrs, *leaves})
        found = []
        for name in {**leaves, **dict.fromkeys(zarrs)}:
            path, kind = leaves.get(name, (None, ""))
            mesh, spec = shardings.get(name, (None, None))
            array = StoredArray(
                name=name,
                path=path,
                is_scalar=kind == "scalar",
                zarr=zarrs.get(name),
                write_shape=write_shapes.get(name),
                mesh=mesh,
                spec=spec,
                chunks=tuple(chunks.get(name, ())),
            )
            found.append(array)
        self._check(found, leaves)
        return tuple(found)

    def _zarrs(self, keys: Mapping[str, Chunk]) -> dict[str, ZarrArray]:
        found = {}
        described = (key for key in sorted(keys) if key.endswith(layout.ARRAY_FILES))
        for key in itertools.islice(described, self._most):
            name, _, last = key.rpartition("/")
            chunk = keys[key]
            try:
                found[name] = read_zarr(chunk.read())
            except (ValueError, OSError) as error:
                self._told.add(name)
                self._problems.append(f"{last} of {name} is damaged: {error}")
        return found

    def _check(self, arrays: Sequence[StoredArray], leaves: Mapping[str, Any]) -> None:
        lost = [a.name for a in arrays if a.zarr is None and a.name not in self._told]
        if lost and self._is_listed:
            self._problems.append(f"no Zarr metadata of {listed(lost, _LISTED)}")
        for array in arrays:
            if array.num_missing and array.zarr is not None:
                self._problems.append(
                    f"{array.num_missing} of {array.zarr.num_objects} chunks of {array.name} are "
                    "missing"
                )
        unknown = [array.name for array in arrays if leaves and array.name not in leaves]
        if unknown:
            self._problems.append(f"{layout.TREE} does not know {listed(unknown, _LISTED)}")


def _duration(root: Mapping[str, Any]) -> float | None:
    begin, end = root.get("init_timestamp_nsecs"), root.get("commit_timestamp_nsecs")
    return (end - begin) / 1e9 if isinstance(begin, int) and isinstance(end, int) else None


def _leaves(tree: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Yields path, name and kind of every leaf that `_METADATA` lists."""
    entries = tree.get("tree_metadata")
    for entry in entries.values() if isinstance(entries, dict) else ():
        try:
            keys = [(key["key"], key["key_type"]) for key in entry["key_metadata"]]
            value = str(entry["value_metadata"]["value_type"])
        except (KeyError, TypeError):
            continue
        path = tuple(int(key) if kind == 1 else str(key) for key, kind in keys)
        kind = value if value in ("scalar", "string") else "array"
        if not entry["value_metadata"].get("skip_deserialize"):  # as an empty node has
            yield path, ".".join(map(str, path)), kind


def _chunks(keys: Mapping[str, Chunk], names: set[str]) -> dict[str, list[Chunk]]:
    found: dict[str, list[Chunk]] = {}
    for key, chunk in keys.items():
        parts = key.split("/")
        if parts[-1] in layout.ARRAY_FILES:
            continue
        for length in range(len(parts) - 1, 0, -1):
            name = "/".join(parts[:length])
            if name in names:
                found.setdefault(name, []).append(chunk)
                break
    return found
