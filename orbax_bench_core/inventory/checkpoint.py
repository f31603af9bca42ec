"""Reading of checkpoints from their files: commit, arrays, chunks and what is missing."""

import base64
import binascii
import contextlib
import dataclasses
import itertools
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from orbax_bench_core.errors import listed
from orbax_bench_core.files import AnyPath, absolute, read_json
from orbax_bench_core.inventory import layout, locating
from orbax_bench_core.inventory.inventory import files_below, walk
from orbax_bench_core.inventory.locating import Location
from orbax_bench_core.inventory.safetensors import ModelArray, read_model
from orbax_bench_core.inventory.store import Chunk, StoreError, ZarrArray, read_store, read_zarr
from orbax_bench_core.inventory.stored import StoredArray, StoredCheckpoint

_LISTED: Final = 3
_MOST_TREES: Final = 4
_MOST_ARRAYS: Final = 32
"""Trees, and arrays of each, that are read for what their options say: they are alike."""
_DEPTH: Final = 4
_STRINGS: Final = "_strings.json"
"""File of Orbax with the values of the strings of a tree."""
_EMPTY: Final = ("None", "Dict", "List", "Tuple", "NamedTuple")
"""Kinds of nodes without a value, as `_METADATA` calls them."""
_MOST_DATED: Final = 10_000
"""Files of an unfinished save that are asked for their age."""
_UNMARKED: Final = PurePosixPath("orbax.checkpoint")
"""File that Orbax's v1 functions write into the root, always together with its metadata."""


def read_checkpoint(path: str) -> StoredCheckpoint:
    """Reads what the files of a checkpoint say, without a value of its arrays.

    Raises:
        UserError: The path names no checkpoint, or several.
    """
    location = locating.locate(path)
    if location.form == "safetensors":
        return _of_model(path, location.root)
    return _Reader(path, location.root, location.item or "").read()


def read_items(path: str) -> StoredCheckpoint:
    """Reads all items of a checkpoint as one tree, whose first keys are their names.

    Raises:
        UserError: The path names no checkpoint, or several.
    """
    root = absolute(path)
    items = locating.trees_of(root) if locating.is_root(root) else []
    if len(items) < 2:
        return read_checkpoint(path)
    read = {item: _Reader(path, root, item).read() for item in items}
    return dataclasses.replace(
        max(read.values(), key=lambda one: sum(array.num_bytes for array in one.arrays)),
        item="",
        arrays=tuple(_within(item, array) for item, one in read.items() for array in one.arrays),
    )


def _within(item: str, array: StoredArray) -> StoredArray:
    keys = array.path if array.path is not None else (array.name,) if array.name else ()
    return dataclasses.replace(array, name=f"{item}.{array.name}", path=(item, *keys))


def random_keys(location: Location) -> frozenset[str]:
    """Returns the names of arrays that hold the data of random keys, by Orbax's own metadata."""
    reader = _Reader(str(location.folder), location.folder, "", folder=layout.ARRAY_METADATA)
    return frozenset(reader.array_metadata().random_keys)


def read_saved_trees(directory: AnyPath) -> tuple[StoredCheckpoint, ...]:
    """Reads up to four trees below a directory, and 32 arrays of each; no unfinished save.

    Options hold for all arrays alike, so that a few of a large tree tell as much as all.
    """
    # Lazily: a training may have left thousands of steps, of which the first few say enough.
    folders = itertools.islice(_tree_folders(directory, _DEPTH), _MOST_TREES)
    return tuple(_Reader(str(folder), folder, "", most=_MOST_ARRAYS).read() for folder in folders)


def _tree_folders(directory: AnyPath, depth: int) -> Iterator[AnyPath]:
    if locating.UNFINISHED in directory.name or not directory.is_dir():
        return
    if locating.is_item(directory):
        yield directory
    elif depth:
        for child in sorted(directory.iterdir()):
            yield from _tree_folders(child, depth - 1)


@dataclasses.dataclass
class _ArrayMetadata:
    """What `array_metadatas` says, by the names of arrays."""

    write_shapes: dict[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    random_keys: set[str] = dataclasses.field(default_factory=set)
    processes: int | None = None


class _Reader:
    """Reads one checkpoint, and notes what is wrong with it on the way."""

    def __init__(
        self, path: str, root: AnyPath, item: str, *, most: int | None = None, folder: str = ""
    ) -> None:
        """Lists the files below the root, or only those in one `folder` of it."""
        self._path, self._root, self._item, self._most = path, root, item, most
        self._folder = root / item if item else root
        below, _ = files_below(root / folder) if folder else files_below(root)
        self._sizes = {PurePosixPath(folder) / file: size for file, size in below.items()}
        self._problems: list[str] = []
        self._unloadable: list[str] = []
        self._notes: list[str] = []
        self._is_listed = False
        self._told: set[str] = set()
        """Arrays of which a problem says all that there is to say."""

    def read(self) -> StoredCheckpoint:
        root = self._json(self._root / locating.ROOT_FILE, needed=self._needs_root_file()) or {}
        handler = _handlers(root).get(self._item, "")
        is_tree = not handler or locating.writes_a_tree(handler) or self._has(locating.TREE)
        in_msgpack = locating.holds_msgpack(self._folder / locating.MSGPACK_TREE)
        said = self._json(self._folder / locating.TREE, needed=is_tree and not in_msgpack)
        tree = said or {}
        is_described = isinstance(tree.get("tree_metadata"), dict)
        if said is not None and not (is_described and all(map(_leaf, _entries(tree)))):
            name = self._below(locating.TREE)
            self._problems.append(f"{name} is damaged: its tree_metadata does not describe a tree")
        is_committed, commit = self._commit(root)
        described = self.array_metadata()
        ocdbt, arrays = False, tuple[StoredArray, ...]()
        if in_msgpack:
            self._note_msgpack(tree)
        if not is_tree:
            self._unloadable.append(
                f"its item {self._item!r} ({handler}) holds no tree of arrays"
                if self._item
                else f"it was written by {handler}, which saves no tree of arrays"
            )
        elif not in_msgpack or self._has("manifest.ocdbt") or _stored(tree):
            ocdbt, keys = self._keys(tree)
            arrays = self._arrays(tree, keys, described)
        strings = tuple(name for _, name, kind in _leaves(tree) if kind == "string")
        self._look_for(strings)
        self._look_at_others(root)
        return StoredCheckpoint(
            path=self._path,
            root=str(self._root),
            item=self._item,
            is_committed=is_committed,
            commit=commit,
            save_s=_duration(root),
            ocdbt=ocdbt,
            arrays=arrays,
            strings=strings,
            sizes=self._sizes,
            processes=described.processes,
            siblings=self._siblings(),
            problems=tuple(self._problems),
            unloadable=tuple(self._unloadable),
            notes=tuple(self._notes),
        )

    def _has(self, name: str) -> bool:
        return PurePosixPath(self._below(name)) in self._sizes

    def _needs_root_file(self) -> bool:
        """Says whether the release that wrote the checkpoint writes metadata of the root."""
        is_recent = any(file.parent.name == layout.ARRAY_METADATA for file in self._sizes)
        is_part = (self._root.parent / locating.ROOT_FILE).exists()  # as a random key's parts are
        return bool(self._item) and (is_recent or _UNMARKED in self._sizes) and not is_part

    def _look_for(self, strings: Sequence[str]) -> None:
        """Notes the strings of the tree that are not in the file of strings."""
        held = self._json(self._folder / _STRINGS, needed=bool(strings))
        lost = [name for name in strings if held is not None and not _holds(held, name)]
        if lost:
            self._problems.append(f"{self._below(_STRINGS)} does not hold {listed(lost, _LISTED)}")

    def _note_msgpack(self, tree: Mapping[str, Any]) -> None:
        """Says which values lie in the file of msgpack of old releases."""
        file = self._below(locating.MSGPACK_TREE)
        inside = [name for _, name, kind in _leaves(tree, skipped=True) if kind != "empty"]
        if inside:
            self._notes.append(
                f"the values of {listed(inside, _LISTED)} are in the file {file} (msgpack, as "
                "Orbax before 0.6 wrote with aggregate), and are not looked at"
            )
        elif not tree:
            self._notes.append(
                f"its tree is in the file {file} (msgpack, as old releases of Orbax and Flax wrote "
                "it), with or without values, and is not looked at"
            )
        if inside or not tree:
            self._unloadable.append(
                f"its file {file} is msgpack, which Orbax v1 does not read: "
                f"{locating.conversion(self._folder)}"
            )

    def _look_at_others(self, root: Mapping[str, Any]) -> None:
        """Looks at the other items of a checkpoint that was named by its root."""
        named = _handlers(root)
        folders = {file.parts[0] for file in self._sizes if len(file.parts) > 1}
        for name in sorted(folders):
            if locating.UNFINISHED in name:
                self._problems.append(f"the save of its item {name} has not finished")
        if not self._item:
            return
        others = {n for n in folders | set(named) if locating.UNFINISHED not in n} - {self._item}
        if str(self._folder) == str(absolute(self._path)):
            if others:
                rest = listed(sorted(others), _LISTED)
                self._notes.append(f"only this item was looked at, not {rest}")
            return
        for name in sorted(others):
            if not (self._root / name).exists():
                self._problems.append(f"{name} is missing, which {locating.ROOT_FILE} names")
                continue
            if named and name not in named:
                self._notes.append(f"{locating.ROOT_FILE} does not name {name}: not looked at")
                continue
            is_tree = locating.writes_a_tree(named.get(name, ""))
            if not is_tree and not locating.is_item(self._root / name):
                what = f" ({named[name]})" if name in named else ""
                self._notes.append(f"its item {name}{what} holds no tree, and is not looked at")
                continue
            other = _Reader(self._path, self._root / name, "").read()
            self._problems.extend(f"{name}: {problem}" for problem in other.problems)
            self._notes.append(
                f"its item {name} has arrays of its own, {len(other.arrays)} of them; what follows "
                f"is of {self._item} alone"
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
        if locating.UNFINISHED in str(self._root):
            said = f"its save has not finished: its name has {locating.UNFINISHED}"
            self._problems.insert(0, said)  # the cause of all that is missing
            return False, f"no: its name has {locating.UNFINISHED}"
        if PurePosixPath(locating.MARKER_FILE) in self._sizes:
            return True, f"yes: {locating.MARKER_FILE} is there"
        if "://" in str(self._root):
            self._problems.append(
                f"{locating.MARKER_FILE} is missing, without which Orbax takes a checkpoint in "
                "object storage for unfinished: the save has not ended, or a copy left it out"
            )
            return False, f"no: {locating.MARKER_FILE} is missing, and object storage cannot rename"
        if root.get("commit_timestamp_nsecs"):
            said = f"{locating.ROOT_FILE} has the time of its commit"
            return True, f"yes: {said}, though {locating.MARKER_FILE} is missing"
        return None, f"unknown: neither {locating.MARKER_FILE} nor the time of a commit is there"

    def _siblings(self) -> dict[str, float]:
        if "://" in str(self._root):
            return {}  # a bucket may have any number of them
        found = sorted(
            child.name
            for child in self._root.parent.iterdir()
            if locating.UNFINISHED in child.name and child.name != self._root.name
        )
        return {name: _unchanged_s(str(self._root.parent / name)) for name in found}

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
            more = f", though {listed(sorted(processes), _LISTED)} is there" if processes else ""
            if more or _stored(tree):
                self._problems.append(f"{self._below('manifest.ocdbt')} is missing{more}")
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

    def array_metadata(self) -> _ArrayMetadata:
        found = _ArrayMetadata()
        folder = PurePosixPath(self._below(layout.ARRAY_METADATA))
        files = sorted(file for file in self._sizes if file.parent == folder)
        for file in files:
            entries = self._json(self._root / str(file), needed=False)
            try:
                for entry in (entries or {}).get(layout.ARRAY_METADATA, ()):
                    array = entry["array_metadata"]
                    found.write_shapes[array["param_name"]] = tuple(array["write_shape"])
                    if (array.get("ext_metadata") or {}).get("random_key_impl"):
                        found.random_keys.add(array["param_name"])
            except (KeyError, TypeError, AttributeError):
                self._problems.append(f"{file} is damaged: it does not describe arrays")
        found.processes = len(files) or None
        return found

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
        self, tree: Mapping[str, Any], keys: Mapping[str, Chunk], described: _ArrayMetadata
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
                write_shape=described.write_shapes.get(name),
                is_random_key=name in described.random_keys,
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
                self._problems.append(f"{last} of {name or 'the only array'} is damaged: {error}")
        return found

    def _check(self, arrays: Sequence[StoredArray], leaves: Mapping[str, Any]) -> None:
        lost = [a.label for a in arrays if a.zarr is None and a.name not in self._told]
        if lost and self._is_listed:
            self._problems.append(f"no Zarr metadata of {listed(lost, _LISTED)}")
        for array in arrays:
            if array.num_missing and array.zarr is not None:
                self._problems.append(
                    f"{array.num_missing} of {array.zarr.num_objects} chunks of {array.label} are "
                    "missing"
                )
        unknown = [array.label for array in arrays if leaves and array.name not in leaves]
        if unknown:
            self._problems.append(f"{locating.TREE} does not know {listed(unknown, _LISTED)}")


def _holds(held: object, name: str) -> bool:
    """Says whether Orbax's strings hold one, which it finds by its name as a pointer of JSON."""
    for key in name.split("/"):
        held = held.get(key) if isinstance(held, dict) else None
    return isinstance(held, str)


def _duration(root: Mapping[str, Any]) -> float | None:
    begin, end = root.get("init_timestamp_nsecs"), root.get("commit_timestamp_nsecs")
    return (end - begin) / 1e9 if isinstance(begin, int) and isinstance(end, int) else None


def _handlers(root: Mapping[str, Any]) -> dict[str, str]:
    return locating.handlers_of(root.get("item_handlers"))


def _unchanged_s(folder: str) -> float:
    """Returns the seconds since anything in a folder has changed."""
    changed = os.stat(folder).st_mtime  # noqa: PTH116 - as below
    for _, path in itertools.islice(walk(folder), _MOST_DATED):
        with contextlib.suppress(FileNotFoundError):  # the save goes on, or has just ended
            changed = max(changed, os.stat(path).st_mtime)  # noqa: PTH116 - many files
    return max(0.0, time.time() - changed)


def _of_model(path: str, place: AnyPath) -> StoredCheckpoint:
    """Returns a model in the safetensors format as a checkpoint."""
    model = read_model(place)
    return StoredCheckpoint(
        path=path,
        root=str(place),
        item="",
        is_safetensors=True,
        is_committed=None,
        commit="unknown: the format has no mark of it",
        save_s=None,
        ocdbt=False,
        arrays=tuple(map(_of_model_array, model.arrays)),
        strings=(),
        sizes=model.sizes,
        processes=None,
        siblings={},
        problems=model.problems,
        unloadable=model.unknown_dtypes,
        notes=model.notes,
    )


def _of_model_array(array: ModelArray) -> StoredArray:
    shape = array.shape
    elements = math.prod(shape)
    return StoredArray(
        name=array.name,
        path=(array.name,),
        is_scalar=False,
        zarr=ZarrArray(
            zarr_format=0,
            shape=shape,
            dtype=array.dtype,
            itemsize=array.num_bytes // elements if elements else 0,
            chunk_shape=shape,
            object_shape=shape,
            compressor=None,
        ),
        write_shape=None,
        mesh=None,
        spec=None,
        chunks=(Chunk(array.name, array.num_bytes, array.file, bytes),) if elements else (),
    )


def _stored(tree: Mapping[str, Any]) -> bool:
    """Says whether a tree has leaves that are kept as arrays."""
    return any(kind in ("array", "scalar") for _, _, kind in _leaves(tree))


def _leaves(
    tree: Mapping[str, Any], *, skipped: bool = False
) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Yields path, name and kind of every leaf that `_METADATA` lists, or of those `skipped`.

    Orbax skips nodes that are empty, and those whose values are in a file of msgpack.
    """
    for leaf in filter(None, map(_leaf, _entries(tree))):
        path, value, is_skipped = leaf
        kind = value if value in ("scalar", "string") else "empty" if value in _EMPTY else "array"
        if is_skipped == skipped:
            yield path, ".".join(map(str, path)), kind


def _entries(tree: Mapping[str, Any]) -> Iterable[Any]:
    entries = tree.get("tree_metadata")
    return entries.values() if isinstance(entries, dict) else ()


def _leaf(entry: Any) -> tuple[tuple[str | int, ...], str, bool] | None:
    """Returns path, type and whether Orbax skips it, of an entry; None if it describes no leaf."""
    try:
        keys = [(key["key"], key["key_type"]) for key in entry["key_metadata"]]
        value = entry["value_metadata"]
        path = tuple(int(key) if kind == 1 else str(key) for key, kind in keys)
        return path, str(value["value_type"]), bool(value.get("skip_deserialize"))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _chunks(keys: Mapping[str, Chunk], names: set[str]) -> dict[str, list[Chunk]]:
    found: dict[str, list[Chunk]] = {}
    for key, chunk in keys.items():
        parts = key.split("/")
        if parts[-1] in layout.ARRAY_FILES:
            continue
        for length in range(len(parts) - 1, -1, -1):  # 0: the array of a tree that is one
            name = "/".join(parts[:length])
            if name in names:
                found.setdefault(name, []).append(chunk)
                break
    return found
