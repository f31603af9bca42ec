"""Models in the safetensors format: their arrays, by the headers of their files.

A file is the length of its header (8 bytes, little-endian), the header (JSON: dtype, shape and byte
range of each array by name) and the arrays, little-endian, in row-major order. Where a model has an
index, it says which file holds which array; a file that it does not name is no part of the model.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from orbax_bench_core.config import BITS
from orbax_bench_core.errors import listed, shown
from orbax_bench_core.files import AnyPath, matching, opened, read_json
from orbax_bench_core.inventory.inventory import file_size
from orbax_bench_core.inventory.locating import SAFETENSORS, index_file

DTYPES: Final[Mapping[str, str]] = {
    "BOOL": "bool",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "BF16": "bfloat16",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
}
"""The dtypes that Orbax loads, as the format and as JAX calls them."""
_LENGTH_BYTES: Final = 8
_MOST_HEADER: Final = 100_000_000
"""Bytes of a header, of which the format allows no more."""
_METADATA: Final = "__metadata__"
_LISTED: Final = 3


@dataclasses.dataclass(frozen=True, slots=True)
class ModelArray:
    """One array of a model."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # as JAX calls it, or as the file does where Orbax does not load it
    num_bytes: int
    file: str  # its name in the directory of the model


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """A model, as its index and the headers of its files tell it."""

    arrays: tuple[ModelArray, ...]  # those that are part of it and were found, by name
    sizes: Mapping[PurePosixPath, int]  # bytes of its files
    extra_files: tuple[str, ...]  # files of the format that the index does not name
    extra_arrays: tuple[str, ...]  # arrays in its files that the index does not name
    problems: tuple[str, ...]  # what is wrong with it, a line each
    unknown_dtypes: tuple[str, ...]  # arrays that Orbax does not load, a line each

    @property
    def notes(self) -> tuple[str, ...]:
        """What lies next to it and is no part of it, a line each."""
        files = [
            f"{name} is not named by the index, and is not loaded" for name in self.extra_files
        ]
        names = listed(self.extra_arrays, _LISTED)
        return (*files, *([f"the index does not name {names}: not loaded"] if names else []))


def read_model(place: AnyPath) -> Model:
    """Reads the model in a directory, or in one file, without a value of its arrays.

    Args:
        place: A folder of files that belong together, with or without an index, or one file.

    Returns:
        The arrays by name. What is missing, damaged or held twice is one line each of `problems`,
        and the rest of the model is read nevertheless.
    """
    folder = place if place.is_dir() else place.parent
    found = {file.name: file for file in matching(folder, f"*{SAFETENSORS}")}
    index = None if folder != place else index_file(folder)
    problems: list[str] = []
    listing: dict[str, str] | None = None
    if folder != place:
        found = {place.name: place}
    elif index is not None:
        listing = _listing(index, problems)
    names = sorted(found) if listing is None else sorted(set(listing.values()))
    sizes: dict[PurePosixPath, int] = {}
    arrays: dict[str, ModelArray] = {}
    extra: list[str] = []
    unread: set[str] = set()
    for name in names:
        if name not in found:
            problems.append(f"{name} is missing, which {'' if index is None else index.name} names")
            unread.add(name)
            continue
        sizes[PurePosixPath(name)] = size = file_size(found[name])
        try:
            entries = _read_header(found[name], size)
        except (ValueError, OSError) as error:
            problems.append(f"{name} is damaged: {error}")
            unread.add(name)
            continue
        for array in entries:
            if listing is not None and array.name not in listing:
                extra.append(array.name)
            elif array.name in arrays:
                both = f"{arrays[array.name].file} and {name}"
                problems.append(f"{both} both hold {array.name!r}, which Orbax refuses")
            else:
                arrays[array.name] = array
    for name, file in sorted((listing or {}).items()):
        holder = arrays[name].file if name in arrays else None
        if holder != file and file not in unread:
            where = "" if holder is None else f"; {holder} does"
            problems.append(f"{file} does not hold {name!r}, as the index says{where}")
    return Model(
        arrays=tuple(arrays[name] for name in sorted(arrays)),
        sizes=sizes,
        extra_files=tuple(sorted(set(found) - set(names))) if listing is not None else (),
        extra_arrays=tuple(extra),
        problems=tuple(problems),
        unknown_dtypes=tuple(
            f"{array.file}: {array.name!r} has the dtype {array.dtype!r}; Orbax loads "
            f"{', '.join(DTYPES)}"
            for array in arrays.values()
            if array.dtype not in DTYPES.values()
        ),
    )


def _listing(index: AnyPath, problems: list[str]) -> dict[str, str] | None:
    """Returns the file of each array by an index; None if it cannot be read, which is noted."""
    try:
        content = read_json(index)
        listing = content.get("weight_map") if isinstance(content, dict) else None
        if not isinstance(listing, dict) or not listing:
            raise ValueError("it has no weight_map, which names the file of each array")
        if wrong := sorted(name for name, file in listing.items() if not isinstance(file, str)):
            raise ValueError(f"its weight_map names no file for {listed(wrong, _LISTED)}")
        if outside := sorted(file for file in set(listing.values()) if "/" in file):
            raise ValueError(f"it names {listed(outside, _LISTED)}, outside of its directory")
    except (ValueError, OSError) as error:
        problems.append(f"{index.name} is damaged: {error}")
        return None
    return listing


def _read_header(file: AnyPath, size: int) -> list[ModelArray]:
    with opened(file) as stream:
        text = stream.read(_LENGTH_BYTES)
        length = int.from_bytes(text, "little")
        if text.startswith(b"version "):
            raise ValueError("it is a pointer of Git LFS, not the file itself; run git lfs pull")
        if len(text) < _LENGTH_BYTES or length > min(size - _LENGTH_BYTES, _MOST_HEADER):
            raise ValueError(
                f"it has no safetensors header: of {size:,} bytes {length:,} were to be its header"
            )
        header = _json(stream.read(length))
    found = []
    for name, entry in header.items():
        if name == _METADATA:
            continue
        try:
            begin, end = map(int, entry["data_offsets"])
            shape, code = tuple(map(int, entry["shape"])), str(entry["dtype"])
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"its header does not describe {shown(name)} as an array") from None
        if code in DTYPES and math.prod(shape) * BITS[DTYPES[code]] // 8 != end - begin:
            said = f"its header gives {name!r} {end - begin:,} bytes, which its shape is not"
            raise ValueError(said)
        if _LENGTH_BYTES + length + end > size:
            raise ValueError(
                f"it is cut short: {size:,} bytes, of {_LENGTH_BYTES + length + end:,} that its "
                f"header tells up to {name!r}"
            )
        found.append(ModelArray(name, shape, DTYPES.get(code, code), end - begin, file.name))
    return found


def _json(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise ValueError("its header is not JSON")
    return header
