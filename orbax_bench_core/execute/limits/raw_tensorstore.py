"""Arrays in TensorStore as Orbax stores them, but without Orbax.

The spec follows Orbax's `tensorstore_utils` for `use_zarr3=True, use_ocdbt=False`: one file per
shard, each with a sharding codec of a single chunk. TensorStore's file driver syncs files and
folders by default, and Orbax leaves that as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import tensorstore as ts

from orbax_bench_core.execute.limits.workload import Array, Workload

_FILE_IO_CONCURRENCY: Final = 128
_ZSTD: Final = {"name": "zstd", "configuration": {"level": 3}}


def folder(workload: Workload, *, compressed: bool) -> Any:
    """Returns the folder that holds the array."""
    return workload.directory / ("zstd" if compressed else "uncompressed")


def write(workload: Workload, *, compressed: bool) -> None:
    """Creates the array and writes all pieces at once, until they are on stable storage."""
    store = _open(workload, compressed=compressed, create=True)
    writes = [
        # As Orbax does: nobody changes the source, so it need not be copied first.
        store[index].write(piece, can_reference_source_data_indefinitely=True)
        for index, piece in enumerate(workload.pieces)
    ]
    for write_ in writes:
        write_.result()


def read(workload: Workload, *, compressed: bool) -> Sequence[Array]:
    """Opens the array and reads all pieces at once, into memory of TensorStore's choice."""
    store = _open(workload, compressed=compressed, create=False)
    reads = [store[index].read() for index in range(len(workload.pieces))]
    return [np.asarray(read_.result()) for read_ in reads]


def _open(workload: Workload, *, compressed: bool, create: bool) -> Any:
    # A new context for each, so that nothing is left in a cache.
    context = ts.Context({"file_io_concurrency": {"limit": _FILE_IO_CONCURRENCY}})
    spec = {
        "driver": "zarr3",
        "kvstore": kvstore(str(folder(workload, compressed=compressed))),
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


def kvstore(path: str) -> dict[str, Any]:
    """Returns the TensorStore spec of a folder, local or gs://."""
    if path.startswith("gs://"):
        bucket, _, prefix = path.removeprefix("gs://").partition("/")
        return {"driver": "gcs", "bucket": bucket, "path": f"{prefix}/"}
    return {"driver": "file", "path": f"{path}/"}
