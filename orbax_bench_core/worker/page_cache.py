"""Page cache: dropping a checkpoint's pages without root, and the share that is resident."""

import contextlib
import ctypes
import functools
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from orbax_bench_core.config import Conditions
from orbax_bench_core.files import AnyPath
from orbax_bench_core.measure import RESIDENT_SHARE, Sample

_PAGE = mmap.PAGESIZE
_MAP_FAILED = ctypes.c_void_p(-1).value
_READ_SIZE = 1 << 22
_LOWEST_BIT = bytes(byte & 1 for byte in range(256))


def drop(directory: Path) -> None:
    """Has the kernel forget the pages of every file below `directory`.

    Raises:
        OSError: A file cannot be opened, or its pages cannot be written.
    """
    # Dirty pages cannot be dropped, so each file is first written to storage. Pages that another
    # process has mapped stay, which is why the outcome has to be measured.
    for path in _files(directory):
        with _open(path) as descriptor:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def fill(directory: Path) -> None:
    """Reads every file below `directory` once, so that its pages are resident."""
    for path in _files(directory):
        with _open(path) as descriptor:
            while os.read(descriptor, _READ_SIZE):
                pass


def make_durable(directory: Path) -> None:
    """Waits until every file and folder below `directory`, and itself, are on stable storage.

    Files are written by `fsync`, and so are folders: without that a crash of the machine may leave
    a file that no folder names.

    Raises:
        OSError: A file or folder cannot be opened or written.
    """
    for path in _files(directory):
        with _open(path) as descriptor:
            os.fsync(descriptor)
    for folder in [*(path for path in directory.rglob("*") if path.is_dir()), directory]:
        with _open(folder) as descriptor:
            os.fsync(descriptor)


def resident_share(directory: Path) -> float | None:
    """The share of the pages below `directory` that are in the page cache, by mincore(2).

    Returns:
        A share between 0 and 1; None without a page.
    """
    resident = pages = 0
    for path in _files(directory):
        found = _residency(path)
        resident += found.translate(_LOWEST_BIT).count(1)
        pages += len(found)
    return resident / pages if pages else None


def _residency(path: str) -> bytes:
    """Returns one byte per page of a file; its lowest bit says whether the page is resident."""
    libc = _libc()
    with _open(path) as descriptor:
        size = os.fstat(descriptor).st_size
        if size == 0:
            return b""
        address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address == _MAP_FAILED:
        raise OSError(ctypes.get_errno(), "mmap", path)
    try:
        answer = (ctypes.c_ubyte * -(-size // _PAGE))()
        if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), answer) != 0:
            raise OSError(ctypes.get_errno(), "mincore", path)
        return bytes(answer)
    finally:
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    ]
    return libc


def _files(directory: str | Path) -> list[str]:
    """Returns the path of every file below a local folder; none where it cannot be listed."""
    return [
        path
        for folder, _, names in os.walk(directory)
        for name in names
        if os.path.isfile(path := f"{folder}/{name}")  # noqa: PTH113 - one call per file
    ]


@contextlib.contextmanager
def _open(path: str | Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class PageCacheConditioner:
    """Sets the page cache before a load, and records what share of the checkpoint is resident."""

    def __init__(
        self,
        conditions: Conditions,
        observe: Callable[[Sequence[Sample]], None],
        await_all_hosts: Callable[[], None],
    ) -> None:
        self._conditions = conditions
        self._observe = observe
        self._await_all_hosts = await_all_hosts
        self._loads: dict[str, int] = {}

    @property
    def durable(self) -> bool:
        """Whether a save is also to be timed until it is on stable storage."""
        return self._conditions.durable

    def make_durable(self, checkpoint: AnyPath) -> None:
        """Waits until a checkpoint is on stable storage; an object store's always is."""
        if _is_local(checkpoint):
            make_durable(Path(checkpoint))

    def prepare_load(self, operation: str, checkpoint: AnyPath) -> None:
        """Drops or reads the checkpoint's pages, and records the share that is then resident.

        Args:
            operation: Name of the block that loads.
            checkpoint: Folder of the checkpoint.
        """
        # A remote checkpoint has no pages here: its loads are neither warm nor cold, and no share
        # is recorded.
        occurrence = self._loads[operation] = self._loads.get(operation, -1) + 1
        if not _is_local(checkpoint):
            return
        directory = Path(checkpoint)
        if self._conditions.cache == "cold":
            drop(directory)
        else:
            fill(directory)
        self._await_all_hosts()
        # No host looks before all have dropped or read the pages, or loads before all have looked.
        share = resident_share(directory)
        if share is not None:
            metric = RESIDENT_SHARE
            self._observe([Sample(operation, occurrence, metric.name, share, metric.unit)])
        self._await_all_hosts()


def _is_local(path: AnyPath) -> bool:
    return "://" not in str(path)
