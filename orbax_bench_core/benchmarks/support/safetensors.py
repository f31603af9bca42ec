"""Safetensors file format: the files of a model that are loaded, and a writer."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.benchmarks.support.options import await_all_hosts
from orbax_bench_core.errors import UserError
from orbax_bench_core.interface import UnmetNeed
from orbax_bench_core.inventory import DTYPES, SAFETENSORS, locate, read_checkpoint, read_model

if TYPE_CHECKING:
    from etils import epath

_LENGTH_BYTES: Final = 8


def named_files(path: str, links: epath.Path) -> tuple[epath.Path, tuple[str, ...]]:
    """Returns where Orbax finds a model, and the arrays there that are no part of it.

    Orbax takes every file of the format in a directory. Where an index does not name all of them,
    those that it names are linked into the folder `links`. Every process must call.

    Raises:
        StateError: It is no whole model, or lies in a bucket, where nothing can be linked.
    """
    import jax

    from orbax_bench_core.state import StateError

    try:
        location = locate(path)
        read_checkpoint(path).check()
    except UserError as error:
        raise StateError(str(error)) from None
    if location.form != "safetensors":
        raise StateError(
            f"path {path!r} is a checkpoint of Orbax, which the benchmark orbax_load loads"
        )
    model = read_model(location.root)
    if not model.extra_files:
        return location.root, model.extra_arrays
    if "://" in str(location.root) or "://" in str(links):
        raise StateError(
            f"checkpoint {path!r}: {model.notes[0]}; Orbax would load it: move it away"
        )
    if jax.process_index() == 0:
        links.mkdir(parents=True)
        for name in model.sizes:
            Path(links / str(name)).symlink_to(location.root / str(name))
    await_all_hosts("linked")
    return links, model.extra_arrays


def write_arrays(directory: epath.Path, tree: Any) -> None:
    """Writes the arrays of a tree as one file, `model.safetensors`.

    The format is that of Hugging Face: the length of the header as 8 bytes, little-endian; the
    header as JSON; and the arrays one after the other. Every process must call; process 0 writes.

    Raises:
        UnmetNeed: The format cannot hold a leaf.
    """
    import jax

    from orbax_bench_core.state import named_leaves

    named = named_leaves(tree)
    header = json.dumps(_header(named)).encode()
    header += b" " * (-len(header) % 8)  # keeps the arrays aligned
    if jax.process_index() == 0:
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / f"model{SAFETENSORS}").open("wb") as file:
            file.write(len(header).to_bytes(_LENGTH_BYTES, "little"))
            file.write(header)
            for _, leaf in named:
                file.write(_bytes(leaf))
    else:
        for _, leaf in named:
            _bytes(leaf)
    await_all_hosts("written")


def check_holds(name: str, dtype: str, *, array: bool) -> None:
    """Checks that the format can hold a leaf.

    Args:
        name: The leaf, for the message.
        dtype: Its dtype, as NumPy names it.
        array: Whether it is an array; the format has no other leaves.

    Raises:
        UnmetNeed: The format cannot.
    """
    known = DTYPES.values()
    if dtype not in known or not array:
        raise UnmetNeed(
            f"safetensors cannot hold {name!r}, which is {dtype}: leave it out of the spec of the "
            f"checkpoint_config, or give an array of {', '.join(known)}"
        )


def _header(named: list[tuple[str, Any]]) -> dict[str, Any]:
    import jax

    codes = {dtype: code for code, dtype in DTYPES.items()}
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
