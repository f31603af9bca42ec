"""Zarr metadata of one array: shape, dtype, chunks and compressor, of both versions."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, Final

from orbax_bench_core.config import BITS, canonical

_COMPRESSORS: Final = ("zstd", "gzip", "blosc")
_KINDS: Final = {"f": "float", "i": "int", "u": "uint", "c": "complex", "b": "bool"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ZarrArray:
    """Metadata of an array, from `zarr.json` or `.zarray`.

    Attributes:
        zarr_format: 2 or 3.
        shape: Global shape, in elements.
        dtype: Its dtype, as `jax.numpy` spells it, or as it is written where that knows it not.
        itemsize: Bytes of an element.
        chunk_shape: The smallest part that can be read alone.
        object_shape: What one key of the store holds.
        compressor: Name of the codec that compresses it; None without one.
    """

    zarr_format: int
    shape: tuple[int, ...]
    dtype: str
    itemsize: int
    chunk_shape: tuple[int, ...]
    object_shape: tuple[int, ...]
    compressor: str | None

    @property
    def num_bytes(self) -> int:
        """Bytes of all values."""
        return math.prod(self.shape) * self.itemsize

    @property
    def num_objects(self) -> int:
        """Keys of the store that hold values."""
        pairs = zip(self.shape, self.object_shape, strict=True)
        return math.prod(math.ceil(size / part) for size, part in pairs)

    @property
    def chunk_bytes(self) -> int:
        """Bytes of the values of one chunk, before compression."""
        return math.prod(self.chunk_shape) * self.itemsize


def read_zarr(text: bytes | str) -> ZarrArray:
    """Reads the metadata of one array."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("brackets too deep in each other") from None
    try:
        return _zarr2(found) if found["zarr_format"] == 2 else _zarr3(found)
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"it does not describe an array ({error!r})") from None


def _zarr2(found: dict[str, Any]) -> ZarrArray:
    chunk, compressor = tuple(found["chunks"]), found["compressor"]
    dtype, itemsize = _dtype(str(found["dtype"]))
    return ZarrArray(
        zarr_format=2,
        shape=tuple(found["shape"]),
        dtype=dtype,
        itemsize=itemsize,
        chunk_shape=chunk,
        object_shape=chunk,
        compressor=None if compressor is None else str(compressor["id"]),
    )


def _zarr3(found: dict[str, Any]) -> ZarrArray:
    whole = chunk = tuple(found["chunk_grid"]["configuration"]["chunk_shape"])
    codecs = found["codecs"]
    if codecs[0]["name"] == "sharding_indexed":
        inner = codecs[0]["configuration"]
        chunk, codecs = tuple(inner["chunk_shape"]), inner["codecs"]
    dtype, itemsize = _dtype(str(found["data_type"]))
    return ZarrArray(
        zarr_format=3,
        shape=tuple(found["shape"]),
        dtype=dtype,
        itemsize=itemsize,
        chunk_shape=chunk,
        object_shape=whole,
        compressor=next((c["name"] for c in codecs if c["name"] in _COMPRESSORS), None),
    )


def _dtype(name: str) -> tuple[str, int]:
    """Returns a dtype as `jax.numpy` spells it, and the bytes of an element."""
    if name[:1] in "<>|" and name[1:2] in _KINDS and name[2:].isdecimal():
        size = int(name[2:])
        kind = _KINDS[name[1]]
        return (kind if kind == "bool" else f"{kind}{8 * size}"), size
    known = canonical(name)
    if known is None:
        raise ValueError(f"its dtype {name!r} is not known")
    return known, BITS[known] // 8
