"""Kinds of the files of a checkpoint, by their names and places."""

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import IO, Any, Final, Literal, get_args

ARRAY_METADATA: Final = "array_metadatas"
"""Folder of Orbax's own metadata of arrays, of each process."""
ARRAY_FILES: Final = ("zarr.json", ".zarray")
"""Files of Zarr that describe an array."""

Kind = Literal[
    "ocdbt_data",
    "ocdbt_index",
    "ocdbt_manifest",
    "zarr2_chunk",
    "zarr2_metadata",
    "zarr3_chunk",
    "zarr3_metadata",
    "safetensors_data",
    "safetensors_metadata",
    "torch_data",
    "torch_metadata",
    "orbax_metadata",
    "commit",
    "other",
]
Role = Literal["data", "metadata", "other"]

ROLES: Final[Mapping[Kind, Role]] = {
    **dict.fromkeys(get_args(Kind), "metadata"),
    **{kind: "data" for kind in get_args(Kind) if kind.endswith(("_data", "_chunk"))},
    "other": "other",
}
"""Role of each kind: array values (`data`), or where and what they are (`metadata`)."""

_BY_NAME: Final[Mapping[str, Kind]] = {
    "manifest.ocdbt": "ocdbt_manifest",
    ".zarray": "zarr2_metadata",
    ".zgroup": "zarr2_metadata",
    ".zattrs": "zarr2_metadata",
    ".zmetadata": "zarr2_metadata",
    "zarr.json": "zarr3_metadata",
    "_METADATA": "orbax_metadata",
    "_sharding": "orbax_metadata",
    "_strings.json": "orbax_metadata",
    "_CHECKPOINT_METADATA": "orbax_metadata",
    "_ROOT_METADATA": "orbax_metadata",
    ".metadata": "torch_metadata",
    "model.safetensors.index.json": "safetensors_metadata",
    "commit_success.txt": "commit",
    "orbax.checkpoint": "commit",
}
_BY_SUFFIX: Final[Mapping[str, Kind]] = {
    ".safetensors": "safetensors_data",
    ".distcp": "torch_data",
    ".pt": "torch_data",
    ".pth": "torch_data",
}
_BY_PARENT: Final[Mapping[str, Kind]] = {
    "array_metadatas": "orbax_metadata",
    "descriptor": "orbax_metadata",
}
_NUMBERED_MANIFEST = re.compile(r"manifest\.[0-9a-f]{16}$")
_OCDBT_FILE = re.compile(r"[0-9a-f]{32}$")
_CHUNK = re.compile(r"\d+([./]\d+)*$")
_ZARR3_CHUNK = re.compile(r"c(/\d+)*$")

# Each block that OCDBT itself writes begins with a magic number, big-endian, and its own length,
# little-endian; values lie between them without any header. See "On-disk format" in TensorStore's
# documentation of the ocdbt key-value store.
_BTREE_NODE = bytes.fromhex("0cdb20de")
_VERSION_NODE = bytes.fromhex("0cdb1234")
_HEADER_BYTES = 12


def kinds_of(files: Iterable[PurePosixPath]) -> dict[PurePosixPath, Kind]:
    """Returns the kind of each file of a checkpoint; all paths are relative to one root.

    Zarr chunks and OCDBT files have names without meaning (`0.0`, a hash), so a file is judged by
    the array or database that it lies in. Index files of OCDBT cannot be told from data files by
    their place: they come out as `ocdbt_data`, for `holds_only_nodes` to look inside.
    """
    found = tuple(files)
    zarr2 = {file.parent for file in found if file.name == ".zarray"}
    zarr3 = {file.parent for file in found if file.name == "zarr.json"}
    databases = {file.parent for file in found if file.name == "manifest.ocdbt"}
    return {
        file: _BY_NAME.get(file.name)
        or _BY_PARENT.get(file.parent.name)
        or _BY_SUFFIX.get(file.suffix)
        or _ocdbt(file, databases)
        or _zarr(file, zarr2, zarr3)
        or "other"
        for file in found
    }


def _ocdbt(file: PurePosixPath, databases: set[PurePosixPath]) -> Kind | None:
    if file.parent in databases and _NUMBERED_MANIFEST.match(file.name):
        return "ocdbt_manifest"
    if file.parent.name != "d" or not _OCDBT_FILE.match(file.name):
        return None
    database = file.parent.parent
    # A save that was cut short has files of a process's database, but no manifest yet.
    known = database in databases or database.name.startswith("ocdbt.process_")
    return "ocdbt_data" if known else None


def _zarr(file: PurePosixPath, zarr2: set[PurePosixPath], zarr3: set[PurePosixPath]) -> Kind | None:
    for folder in file.parents:
        key = file.relative_to(folder).as_posix()
        if folder in zarr3 and (_ZARR3_CHUNK.match(key) or _CHUNK.match(key)):
            return "zarr3_chunk"
        if folder in zarr2 and _CHUNK.match(key):
            return "zarr2_chunk"
    return None


def holds_only_nodes(file: IO[Any], size: int) -> bool:
    """Returns whether an OCDBT file of `size` bytes, open at its beginning, has index nodes only.

    Orbax commits several times during one save, and each commit leaves such a file of a few hundred
    bytes beside the data files.
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
