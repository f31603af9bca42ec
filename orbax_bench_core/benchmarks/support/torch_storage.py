"""Storage of PyTorch's checkpoints: its own writer and reader, on gs:// too."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from etils import epath


def sync_file(file: epath.Path) -> None:
    """Waits until a file has reached stable storage; in an object store it always has."""
    if not is_local(file):
        return
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_local(path: epath.Path) -> bool:
    """Says whether a path lies on a file system of this machine."""
    return "://" not in str(path)


def writer(path: epath.Path, **settings: Any) -> Any:
    """Returns PyTorch's own writer."""
    from torch.distributed.checkpoint import FileSystemWriter

    return _reaching(path, FileSystemWriter(str(path), **settings))


def reader(path: epath.Path) -> Any:
    """Returns PyTorch's own reader."""
    from torch.distributed.checkpoint import FileSystemReader

    return _reaching(path, FileSystemReader(str(path)))


def _reaching(path: epath.Path, storage: Any) -> Any:
    if not is_local(path):
        storage.fs, storage.path = ObjectStore(), path
    return storage


class ObjectStore:
    """The functions of PyTorch's `FileSystem`, by the library that all else here reaches gs:// by.

    PyTorch has an implementation of its own over fsspec, which is private.
    """

    @contextlib.contextmanager
    def create_stream(self, path: epath.Path, mode: str) -> Iterator[IO[Any]]:
        """Opens a file."""
        with path.open(mode) as stream:
            yield stream

    def concat_path(self, path: epath.Path, suffix: str) -> epath.Path:
        """Returns a path within another."""
        return path / suffix

    def rename(self, path: epath.Path, new_path: epath.Path) -> None:
        """Gives a file another name: that of the metadata, which is small."""
        new_path.write_bytes(path.read_bytes())
        path.unlink()

    def mkdir(self, path: epath.Path) -> None:
        """Makes a directory, which an object store does not have."""

    def exists(self, path: epath.Path) -> bool:
        """Says whether there is such a file."""
        return bool(path.exists())

    def rm_file(self, path: epath.Path) -> None:
        """Removes a file."""
        path.unlink()
