"""Synthetic data that every probe moves, and a scratch folder with room for it."""

from __future__ import annotations

import contextlib
import dataclasses
import mmap
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from orbax_bench_core.config import ArraySpec
from orbax_bench_core.errors import UserError
from orbax_bench_core.files import AnyPath, checked_path
from orbax_bench_core.limits.reasons import room, size
from orbax_bench_core.reasons import NO_REASON, Reasons, because
from orbax_bench_core.worker import page_cache

_PREFIX = ".orbax-bench-limits-"

MIN_BYTES = 1 << 20
"""With less, a probe measures the start of its threads."""

_MAX_RESIDENT = 0.01
"""Share of the pages of dropped files that may be in memory all the same."""


def is_remote(path: AnyPath) -> bool:
    """Says whether a path is in an object store."""
    return "://" in str(path)


def existing_directory(path: str) -> AnyPath:
    """Returns the directory that `path` names.

    Raises:
        UserError: It does not exist, is no directory, or is an address that cannot be read.
    """
    from etils import epath

    try:
        directory = epath.Path(checked_path(path))
    except ValueError as error:
        raise UserError(str(error)) from None
    if not is_remote(directory) and not directory.is_dir():
        found = "is a file" if directory.exists() else "does not exist"
        raise UserError(f"{path!r} {found}; give an existing directory or a gs:// URI")
    return directory


@contextlib.contextmanager
def scratch(directory: AnyPath) -> Iterator[AnyPath]:
    """Makes a new folder in `directory`, and removes it with all that is in it at the end.

    Raises:
        UserError: The directory cannot be written to.
    """
    folder = directory / f"{_PREFIX}{uuid.uuid4().hex[:12]}"
    if not is_remote(folder):
        try:
            folder.mkdir()
        except OSError as error:
            raise UserError(f"cannot write to {directory}: {error.strerror}") from None
    try:
        yield folder
    finally:
        if not is_remote(folder):
            shutil.rmtree(Path(folder), ignore_errors=True)
        elif folder.exists():
            folder.rmtree()


def fitting_bytes(
    requested: int, *, free_disk: int | None, free_memory: int
) -> tuple[int, Reasons]:
    """Returns how many of the bytes that are asked for can be moved, and what stands in the way.

    Args:
        requested: Bytes that are asked for.
        free_disk: Free bytes of the disk; None in a bucket.
        free_memory: Free bytes of memory.

    Returns:
        Bytes, and what keeps them from being more; empty for nothing.

    Raises:
        UserError: They are too few to measure, or there is no room for as many.
    """
    # Memory holds the bytes up to six times: source, buffers, what TensorStore encodes and decodes,
    # and the page cache. The disk holds them once at a time.
    if requested < MIN_BYTES:
        raise UserError(f"{requested} bytes are too few to measure; use at least {size(MIN_BYTES)}")
    allowed = [(free_memory // 8, "memory", free_memory)]
    if free_disk is not None:
        allowed.append((free_disk // 2, "disk", free_disk))
    fitting, place, free = min(allowed)
    if fitting < MIN_BYTES:
        raise UserError(
            f"no space: only {room(place, free)} may be used, and at least {size(MIN_BYTES)} is "
            "needed; make room"
        )
    if fitting >= requested:
        return requested, NO_REASON
    return fitting, because("little_room", asked=requested, place=place, free=free)


class StaysResident(Exception):
    """Pages that were to be dropped are still in memory, so that no read of them is cold.

    Its argument is their share, from 0 to 1.
    """


def paths(workload: Workload) -> list[Path]:
    """Returns the file of each piece."""
    return [folder(workload) / f"{index}" for index in range(len(workload.pieces))]


def folder(workload: Workload) -> Path:
    """Returns the folder that holds the files, and nothing else."""
    return Path(workload.directory) / "files"


def make_empty(directory: Path) -> None:
    """Makes a folder, without what was in it."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)


def write(path: Path, piece: Array) -> None:
    """Writes one file, and waits until it and its name are on stable storage."""
    with path.open("wb", buffering=0) as file:
        data = piece.view(np.uint8).data
        while data:
            data = data[file.write(data) :]
        os.fsync(file.fileno())
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path, buffer: Array) -> None:
    """Fills a buffer from a file.

    Raises:
        OSError: The file has fewer bytes than the buffer.
    """
    with path.open("rb", buffering=0) as file:
        room = buffer.view(np.uint8).data
        while room:
            count = file.readinto(room)
            if not count:
                raise OSError(f"{path} has {len(room)} bytes less than were written to it")
            room = room[count:]


def ensure_written(workload: Workload) -> None:
    """Writes the files unless an earlier probe has left them."""
    if not folder(workload).exists():
        make_empty(folder(workload))
        for path, piece in zip(paths(workload), workload.pieces, strict=True):
            write(path, piece)


def make_cold(directory: Path) -> None:
    """Drops the pages of all files below a directory, and makes sure that they are gone.

    Raises:
        StaysResident: Pages stay in memory, as on a file system that lies there.
    """
    page_cache.drop(directory)
    share = page_cache.resident_share(directory) or 0.0
    if share > _MAX_RESIDENT:
        raise StaysResident(share)


Array = np.ndarray[Any, np.dtype[Any]]

_SEED = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """One array in equal pieces, one per thread, and the folder of a probe to put them into."""

    directory: AnyPath
    pieces: Sequence[Array]
    buffers: Sequence[Array]  # every page of them is in memory already
    repeats: int  # one more is run first, and discarded

    @property
    def num_bytes(self) -> int:
        """Bytes of all pieces."""
        return sum(piece.nbytes for piece in self.pieces)


def make_workload(
    directory: AnyPath, *, num_bytes: int, parallelism: int, dtype: str, repeats: int
) -> Workload:
    """Makes synthetic data, which compresses as trained weights do.

    Args:
        directory: Where it will be written.
        num_bytes: Bytes in all, rounded down to whole pages of each piece.
        parallelism: Pieces, which are written and read at the same time.
        dtype: Type of the elements.
        repeats: Times that each probe is made.

    Raises:
        UserError: A piece would have less than a page.
    """
    import jax

    from orbax_bench_core.state import generate

    pages = num_bytes // parallelism // mmap.PAGESIZE
    if pages == 0:
        raise UserError(
            f"{num_bytes} bytes in {parallelism} pieces are less than a page each; "
            f"use at least {parallelism * mmap.PAGESIZE} bytes or fewer pieces"
        )
    length = pages * mmap.PAGESIZE // jax.numpy.dtype(dtype).itemsize
    spec = ArraySpec(dtype=dtype, shape=(parallelism, length))
    tree = generate({"array": spec}, seed=_SEED, mesh=None)
    pieces = list(np.asarray(tree["array"]))
    return Workload(
        directory=directory,
        pieces=pieces,
        # zeros() alone would leave the pages to be made on the first write, inside some clock.
        buffers=[piece.copy() for piece in pieces],
        repeats=repeats,
    )
