"""The plain files that probes write and read: one per piece."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np

from orbax_bench_core.execute import page_cache
from orbax_bench_core.execute.limits.workload import Array, Workload

_MAX_RESIDENT = 0.01


class StaysResident(Exception):
    """Pages that were to be dropped are still in memory, so that no read of them is cold."""


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
        OSError: The file is shorter than the buffer.
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
        StaysResident: They are not, as on a file system that lies in memory.
    """
    page_cache.drop(directory)
    share = page_cache.resident_share(directory) or 0.0
    if share > _MAX_RESIDENT:
        raise StaysResident(
            f"not cold: {share:.0%} of the pages stay in memory when dropped, as where a file "
            "system lies in memory"
        )
