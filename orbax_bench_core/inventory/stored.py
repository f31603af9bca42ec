"""Checkpoints as their files tell them: the arrays, and what is wrong."""

import dataclasses
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from orbax_bench_core.errors import UserError, listed
from orbax_bench_core.inventory import layout
from orbax_bench_core.inventory.store import Chunk, ZarrArray

_OF_REPLICA: Final = "ocdbt.process_replica_"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredArray:
    """One array of a checkpoint, or a Python number, as a scalar; None if no metadata say.

    Its name is its key in the store, empty for a tree that is one array; its path the keys in the
    tree, where whole numbers are places in a list. `write_shape` is what one process wrote at a
    time; mesh and spec are what it was saved from; `chunks` are those found.
    """

    name: str
    path: tuple[str | int, ...] | None
    is_scalar: bool
    zarr: ZarrArray | None
    write_shape: tuple[int, ...] | None
    mesh: Mapping[str, int] | None
    spec: tuple[Any, ...] | None
    chunks: tuple[Chunk, ...]
    # whether it holds the data of random keys, whose last dimension is one key
    is_random_key: bool = False

    @property
    def label(self) -> str:
        """What people call it."""
        return self.name or "the only array"

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
        """Whether a chunk is all that one process wrote at a time; None if nothing tells."""
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
    item: str  # name of the item that holds the tree; empty if the root does
    is_safetensors: bool = False
    is_committed: bool | None  # whether its save finished; None if nothing tells
    commit: str  # how that is known, or what is missing
    # seconds from the begin of its save to its commit; None if nothing tells
    save_s: float | None
    ocdbt: bool  # whether its arrays are in an OCDBT database
    arrays: tuple[StoredArray, ...]  # its arrays and Python numbers, by name
    strings: tuple[str, ...]  # names of its strings
    sizes: Mapping[PurePosixPath, int]  # bytes of every file, by its path below the root
    processes: int | None  # processes that wrote it; None if nothing tells
    siblings: Mapping[str, float]  # unfinished saves next to it, and seconds since each changed
    problems: tuple[str, ...]  # what is wrong with it, a line each; empty if nothing was found
    unloadable: tuple[str, ...]  # why Orbax v1 does not load it, though nothing is wrong with it
    notes: tuple[str, ...]  # what of it was not looked at, or is no part of it

    @property
    def random_keys(self) -> frozenset[str]:
        """Names of the arrays that hold the data of random keys."""
        return frozenset(array.name for array in self.arrays if array.is_random_key)

    def check(self) -> None:
        """Checks that it is whole and that Orbax v1 loads it.

        Raises:
            UserError: It is damaged, unfinished, or in a format of before.
        """
        if self.problems:
            raise UserError(f"checkpoint {self.path!r} is not whole: {listed(self.problems, 3)}")
        if self.unloadable:
            raise UserError(
                f"checkpoint {self.path!r} cannot be loaded: {listed(self.unloadable, 3)}"
            )

    @property
    def has_array_metadata(self) -> bool:
        """Whether Orbax's own metadata of arrays are there."""
        return any(file.parent.name == layout.ARRAY_METADATA for file in self.sizes)

    @property
    def has_replica_folders(self) -> bool:
        """Whether replicas have written databases of their own."""
        return any(part.startswith(_OF_REPLICA) for file in self.sizes for part in file.parts)
