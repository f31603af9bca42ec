"""Probes: timed transfers of the same bytes through files, memory, devices and raw TensorStore.

The table `PROBES` at the end holds all that is known of each. A probe returns the seconds of every
repeat that it keeps. JAX and TensorStore are loaded by the probes that need them, so that the table
can be read without.

TensorStore writes arrays as Orbax's `tensorstore_utils` does for `use_zarr3=True, use_ocdbt=False`:
one file per shard, each with a sharding codec of a single chunk. Its file driver syncs files and
folders by default, and Orbax leaves that as it is.
"""

from __future__ import annotations

import dataclasses
import functools
import mmap
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from orbax_bench_core.config import Cache
from orbax_bench_core.inventory import store_spec
from orbax_bench_core.limits import scratch
from orbax_bench_core.limits.model import ProbeName
from orbax_bench_core.limits.scratch import Array, Workload
from orbax_bench_core.worker import page_cache

if TYPE_CHECKING:
    import jax

_FILE_IO_CONCURRENCY: Final = 128
"""The limit that Orbax gives TensorStore."""
_ZSTD: Final = {"name": "zstd", "configuration": {"level": 3}}


def timed(tasks: Sequence[Callable[[], object]]) -> float:
    """Runs tasks side by side, each in a thread of its own that waits for all to be ready.

    Returns:
        Seconds from the moment when all are ready to the end of the last one.
    """
    started: list[float] = []
    together = threading.Barrier(len(tasks), action=lambda: started.append(time.perf_counter()))

    def run(task: Callable[[], object]) -> tuple[float, object]:
        together.wait()
        result = task()
        return time.perf_counter(), result

    with ThreadPoolExecutor(len(tasks)) as threads:
        ended = [future.result() for future in [threads.submit(run, task) for task in tasks]]
    return max(moment for moment, _ in ended) - started[0]


def repeated(repeats: int, once: Callable[[], float]) -> list[float]:
    """Returns the times of `repeats` runs, after one that is discarded."""
    # The first run of anything here takes up to six times as long as the next: its memory is fresh.
    return [once() for _ in range(repeats + 1)][1:]


def _each(task: Callable[..., object], *arguments: Iterable[Any]) -> list[Callable[[], object]]:
    """Returns a call of `task` for each piece of the data, with its arguments."""
    return [functools.partial(task, *given) for given in zip(*arguments, strict=True)]


def write_fsync(workload: Workload) -> list[float]:
    """Times sequential writes with fsync of each file and its folder, as Orbax has them synced."""

    def once() -> float:
        scratch.make_empty(scratch.folder(workload))
        return timed(_each(scratch.write, scratch.paths(workload), workload.pieces))

    return repeated(workload.repeats, once)


def read_files(workload: Workload, *, cache: Cache) -> list[float]:
    """Times sequential reads, one file per thread, into memory that is in use already."""
    scratch.ensure_written(workload)

    def once() -> float:
        _set_cache(scratch.folder(workload), cache)
        return timed(_each(scratch.read, scratch.paths(workload), workload.buffers))

    return repeated(workload.repeats, once)


def _set_cache(folder: Path, cache: Cache) -> None:
    if cache == "cold":
        scratch.make_cold(folder)
    else:
        page_cache.fill(folder)


def memory_copy(workload: Workload) -> list[float]:
    """Times a copy of all pieces, one per thread, from and to pages that exist."""
    copies = _each(np.copyto, workload.buffers, workload.pieces)
    return repeated(workload.repeats, lambda: timed(copies))


def first_touch(workload: Workload) -> list[float]:
    """Times one write to each page of new anonymous mappings, one mapping per thread."""
    # The mappings are private, as those of an allocator are.

    def once() -> float:
        return timed(_each(_touch, [fresh_pages(piece.nbytes) for piece in workload.pieces]))

    return repeated(workload.repeats, once)


def fresh_pages(num_bytes: int) -> Array:
    """Returns the first byte of each page of a new mapping, as a view; none has been touched."""
    mapping = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(mapping, np.uint8)[:: mmap.PAGESIZE]


def _touch(first_bytes: Array) -> None:
    first_bytes[...] = 1


def host_to_device(workload: Workload) -> list[float]:
    """Times the transfer of all pieces to this process's devices, in turn, until they are there."""
    return repeated(workload.repeats, lambda: timed([lambda: on_devices(workload)]))


def device_to_host(workload: Workload) -> list[float]:
    """Times the transfer of all pieces from this process's devices, all under way at once."""

    def once() -> float:
        # An array keeps its host copy, so each repeat needs new ones.
        arrays = on_devices(workload)
        return timed([lambda: _fetch(arrays)])

    return repeated(workload.repeats, once)


def on_devices(workload: Workload) -> Sequence[jax.Array]:
    """Returns the pieces as ready arrays, spread over this process's devices."""
    import jax

    devices = jax.local_devices()
    arrays = [
        jax.device_put(piece, devices[index % len(devices)])
        for index, piece in enumerate(workload.pieces)
    ]
    jax.block_until_ready(arrays)
    return arrays


def _fetch(arrays: Sequence[jax.Array]) -> list[Array]:
    for array in arrays:
        array.copy_to_host_async()
    return [np.asarray(array) for array in arrays]


def tensorstore_write(workload: Workload, *, compressed: bool) -> list[float]:
    """Times the creation of an array, one chunk per piece, until it is on stable storage."""
    folder = array_folder(workload, compressed=compressed)

    def once() -> float:
        if folder.exists():
            folder.rmtree()
        return timed([lambda: write_array(workload, compressed=compressed)])

    return repeated(workload.repeats, once)


def tensorstore_read(workload: Workload, *, compressed: bool, cache: Cache) -> list[float]:
    """Times opening an array and reading all its chunks at once."""
    folder = array_folder(workload, compressed=compressed)
    if not folder.exists():
        write_array(workload, compressed=compressed)

    def once() -> float:
        if "://" not in str(folder):
            _set_cache(Path(folder), cache)
        return timed([lambda: read_array(workload, compressed=compressed)])

    return repeated(workload.repeats, once)


def array_folder(workload: Workload, *, compressed: bool) -> Any:
    """Returns the folder that holds the array."""
    return workload.directory / ("zstd" if compressed else "uncompressed")


def write_array(workload: Workload, *, compressed: bool) -> None:
    """Creates the array and writes all pieces at once, until they are on stable storage."""
    store = _open(workload, compressed=compressed, create=True)
    writes = [
        # As Orbax does: nobody changes the source, so it need not be copied first.
        store[index].write(piece, can_reference_source_data_indefinitely=True)
        for index, piece in enumerate(workload.pieces)
    ]
    for write_ in writes:
        write_.result()


def read_array(workload: Workload, *, compressed: bool) -> Sequence[Array]:
    """Opens the array and reads all pieces at once, into memory of TensorStore's choice."""
    store = _open(workload, compressed=compressed, create=False)
    reads = [store[index].read() for index in range(len(workload.pieces))]
    return [np.asarray(read_.result()) for read_ in reads]


def _open(workload: Workload, *, compressed: bool, create: bool) -> Any:
    import tensorstore as ts

    # A new context for each, so that nothing is left in a cache.
    context = ts.Context({"file_io_concurrency": {"limit": _FILE_IO_CONCURRENCY}})
    spec = {
        "driver": "zarr3",
        "kvstore": store_spec(str(array_folder(workload, compressed=compressed))),
        "metadata": _metadata(workload.pieces, compressed=compressed),
    }
    return ts.open(spec, create=create, open=not create, context=context).result()


def _metadata(pieces: Sequence[Array], *, compressed: bool) -> dict[str, Any]:
    chunk = [1, pieces[0].size]
    little_endian = {"name": "bytes", "configuration": {"endian": "little"}}
    sharding = {
        "chunk_shape": chunk,
        "codecs": [little_endian, _ZSTD] if compressed else [little_endian],
        "index_codecs": [little_endian, {"name": "crc32c"}],
    }
    return {
        "shape": [len(pieces), pieces[0].size],
        "data_type": pieces[0].dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
    }


@dataclasses.dataclass(frozen=True)
class Probe:
    """Definition of one probe."""

    title: str  # what people call it
    bounds: str  # what cannot be faster than it, in words
    # measures it; takes the workload, then `cache` and `compressed` if they are set
    function: Callable[..., list[float]]
    # what the bytes pass through. `files` and `devices` are not there everywhere: object stores
    # have no local files, and on a CPU a device copy is a memory copy
    medium: Literal["files", "memory", "devices", "tensorstore"]
    # what every such operation must do as well; None for what only some do
    operation: Literal["save", "load"] | None = None
    # state of the page cache that it is measured in; None if that does not matter
    cache: Cache | None = None
    compressed: bool | None = None  # whether TensorStore compresses; None for the other media

    @property
    def writes(self) -> bool:
        """Whether it writes to storage."""
        return self.operation == "save" and self.medium in ("files", "tensorstore")

    def measure(self, workload: Workload) -> list[float]:
        """Returns the seconds of each repeat that is kept."""
        given = {"cache": self.cache, "compressed": self.compressed}
        return self.function(
            workload, **{k: value for k, value in given.items() if value is not None}
        )


def _tensorstore(name: str, bounds: str, cache: Cache | None, *, compressed: bool) -> Probe:
    return Probe(
        f"TensorStore {name}" if compressed else f"TensorStore {name}, plain",
        f"{bounds}, {'compressed' if compressed else 'uncompressed'}",
        tensorstore_write if cache is None else tensorstore_read,
        "tensorstore",
        "save" if cache is None else "load",
        cache,
        compressed,
    )


PROBES: Final[Mapping[ProbeName, Probe]] = {
    "write_fsync": Probe("write + fsync", "every save", write_fsync, "files", "save"),
    "read_cold": Probe("cold read", "a cold load", read_files, "files", "load", "cold"),
    "read_warm": Probe("warm read", "a warm load", read_files, "files", "load", "warm"),
    "memory_copy": Probe("memory copy", "every copy on the way", memory_copy, "memory", "load"),
    "first_touch": Probe(
        "first touch of memory", "a load into fresh memory", first_touch, "memory"
    ),
    "host_to_device": Probe("host to device", "every load", host_to_device, "devices", "load"),
    "device_to_host": Probe("device to host", "every save", device_to_host, "devices", "save"),
    "tensorstore_write": _tensorstore("write", "a save", None, compressed=True),
    "tensorstore_read_cold": _tensorstore("cold read", "a cold load", "cold", compressed=True),
    "tensorstore_read_warm": _tensorstore("warm read", "a warm load", "warm", compressed=True),
    "tensorstore_write_uncompressed": _tensorstore("write", "a save", None, compressed=False),
    "tensorstore_read_cold_uncompressed": _tensorstore(
        "cold read", "a cold load", "cold", compressed=False
    ),
    "tensorstore_read_warm_uncompressed": _tensorstore(
        "warm read", "a warm load", "warm", compressed=False
    ),
}
"""Every probe, in the order in which they are measured and shown.

Neighbours of one medium and compression share their files: a probe that writes comes first.
"""
