"""Safetensors file format: the arrays that a checkpoint holds, and a writer.

A file is the length of its header (8 bytes, little-endian), the header (JSON: dtype, shape and byte
range of each array by name) and the arrays, little-endian, in row-major order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.support.options import await_all_hosts
from orbax_bench_core.config import checked_name
from orbax_bench_core.files import matching

if TYPE_CHECKING:
    from etils import epath

SUFFIX: Final = ".safetensors"

_DTYPES: Final[Mapping[str, str]] = {
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
_LENGTH_BYTES: Final = 8
_METADATA: Final = "__metadata__"


def read_arrays(directory: epath.Path) -> dict[str, tuple[list[int], str]]:
    """Returns shape and dtype of every array below a directory, from the headers alone."""
    files = sorted(matching(directory, f"*{SUFFIX}")) if directory.is_dir() else []
    if not files:
        raise ValueError(f"{str(directory)!r} holds no {SUFFIX} files; give a model's directory")
    found: dict[str, tuple[list[int], str]] = {}
    for file in files:
        for name, entry in _read_header(file).items():
            if name == _METADATA:
                continue
            if name in found:
                raise ValueError(
                    f"two files of {str(directory)!r} hold an array called {name!r}; leave one out"
                )
            checked_name(name)
            if entry["dtype"] not in _DTYPES:
                raise ValueError(
                    f"{file.name}: {name!r} has the dtype {entry['dtype']!r}; Orbax loads "
                    f"{', '.join(_DTYPES)}"
                )
            found[name] = (list(entry["shape"]), _DTYPES[entry["dtype"]])
    return found


def write_arrays(directory: epath.Path, tree: Any) -> None:
    """Writes the arrays of a tree as one file, `model.safetensors`."""
    import jax

    from orbax_bench_core.state import named_leaves

    named = named_leaves(tree)
    header = json.dumps(_header(named)).encode()
    header += b" " * (-len(header) % 8)  # keeps the arrays aligned
    if jax.process_index() == 0:
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / f"model{SUFFIX}").open("wb") as file:
            file.write(len(header).to_bytes(_LENGTH_BYTES, "little"))
            file.write(header)
            for _, leaf in named:
                file.write(_bytes(leaf))
    else:
        for _, leaf in named:
            _bytes(leaf)
    await_all_hosts("written")


def check_holds(name: str, dtype: str, *, array: bool) -> None:
    """Checks that the format can hold a leaf."""
    known = _DTYPES.values()
    if dtype not in known or not array:
        raise UnmetNeed(
            f"safetensors cannot hold {name!r}, which is {dtype}: leave it out of the spec of the "
            f"checkpoint_config, or give an array of {', '.join(known)}"
        )


def _read_header(file: epath.Path) -> dict[str, Any]:
    with file.open("rb") as opened:
        size = int.from_bytes(opened.read(_LENGTH_BYTES), "little")
        text = opened.read(min(size, file.stat().length))
    try:
        header = json.loads(text)
    except ValueError:
        header = None
    if len(text) != size or not isinstance(header, dict):
        raise ValueError(f"{str(file)!r} has no safetensors header; was its download cut short?")
    return header


def _header(named: list[tuple[str, Any]]) -> dict[str, Any]:
    import jax

    codes = {dtype: code for code, dtype in _DTYPES.items()}
    header, offset = {}, 0
    for name, leaf in named:
        dtype = leaf.dtype.name if isinstance(leaf, jax.Array) else type(leaf).__name__
        check_holds(name, dtype, array=isinstance(leaf, jax.Array))
        end = offset + math.prod(leaf.shape) * leaf.dtype.itemsize
        header[name] = {
            "dtype": codes[dtype],
            "shape": list(leaf.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    return header


def _bytes(leaf: Any) -> bytes:
    import numpy as np
    from jax.experimental import multihost_utils

    whole = (
        leaf if leaf.is_fully_addressable else multihost_utils.process_allgather(leaf, tiled=True)
    )
    host = np.ascontiguousarray(np.asarray(whole))
    return host.astype(host.dtype.newbyteorder("<"), copy=False).tobytes()
