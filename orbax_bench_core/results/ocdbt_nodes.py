"""Telling OCDBT files that hold array data from those that hold only the index to it."""

from __future__ import annotations

from typing import IO, Any

# Each block that OCDBT itself writes begins with a magic number, big-endian, and its own length,
# little-endian; values lie between them without any header. See "On-disk format" in TensorStore's
# documentation of the ocdbt key-value store.
_BTREE_NODE = bytes.fromhex("0cdb20de")
_VERSION_NODE = bytes.fromhex("0cdb1234")
_HEADER_BYTES = 12


def holds_only_nodes(file: IO[Any], size: int) -> bool:
    """Says whether an OCDBT file is nothing but index nodes.

    Orbax commits several times during one save, and each commit leaves such a file of a few hundred
    bytes beside the data files.

    Args:
        file: The file, opened for reading bytes, at its beginning.
        size: Its size, in bytes.
    """
    offset = 0
    while offset < size:
        file.seek(offset)
        header = file.read(_HEADER_BYTES)
        length = int.from_bytes(header[4:], "little")
        if header[:4] not in (_BTREE_NODE, _VERSION_NODE) or length < _HEADER_BYTES:
            return False
        offset += length
    return size > 0 and offset == size
