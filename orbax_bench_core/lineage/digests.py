"""Digests of what a run reads and writes, as `sha256:<hex>`."""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import pydantic

from orbax_bench_core.inventory import ROLES, kinds_of
from orbax_bench_core.records import refuse_other_version

if TYPE_CHECKING:
    from etils import epath

_AT_ONCE: Final = 16
"""An object store answers many requests at once as fast as one."""
_CHUNK: Final = 2**20
_METADATA_BYTES: Final = 2**24
"""Of a metadata file beyond this only name and size count."""


class PointRecords(pydantic.BaseModel):
    """The records of one sweep point.

    Attributes:
        files: How many there are, warm-ups included.
        digest: SHA-256 over name and SHA-256 of each, in the order of their names.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    files: int
    digest: str


def digest_of(data: bytes) -> str:
    """Returns the digest of some content."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def digest_of_file(path: epath.Path) -> str:
    """Returns the digest of a file, read in pieces.

    Raises:
        OSError: It cannot be read.
    """
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_CHUNK):
            found.update(piece)
    return f"sha256:{found.hexdigest()}"


def digests_of_records(root: epath.Path, point_ids: Iterable[str]) -> dict[str, PointRecords]:
    """Returns a digest per sweep point that has records, in the order of `point_ids`.

    Args:
        root: The run directory.
        point_ids: Its points; records of others are no part of the run.

    Raises:
        UserError: A record is of another schema version.
        OSError: A record cannot be read.
    """
    folder = root / "records"
    by_point: dict[str, list[epath.Path]] = {}
    for path in folder.glob("*/*/host_*.json"):
        by_point.setdefault(path.parent.parent.name, []).append(path)
    wanted = {
        point_id: sorted(by_point[point_id]) for point_id in point_ids if point_id in by_point
    }
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        # One call for all, since most points have but a few; only digests are held.
        found = pool.map(_record_digest, (path for paths in wanted.values() for path in paths))
        return {
            point_id: _together(f"{path.parent.name}/{path.name} {next(found)}" for path in paths)
            for point_id, paths in wanted.items()
        }


def digest_of_all(points: Mapping[str, PointRecords]) -> str:
    """Returns one digest over the records of every point, whatever their order."""
    lines = sorted(f"{point_id} {found.digest}\n" for point_id, found in points.items())
    return digest_of("".join(lines).encode())


def digest_of_run_file(data: bytes) -> str:
    """Returns the digest of a `run.json` but for its status, which tells how far the run is.

    Args:
        data: The file.

    Raises:
        ValueError: It is no JSON object.
    """
    content = json.loads(data)
    content.pop("status", None)
    return digest_of(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


def digest_of_checkpoint(directory: epath.Path) -> str:
    """Returns a digest of a checkpoint that leaves its arrays unread.

    It covers the name and size of every file, and the content of the metadata files (of up to
    16 MiB each): manifests, trees and array metadata, whatever the format. A change of values that
    keeps every name and size, as in Zarr without OCDBT, is not seen; OCDBT names its data anew.

    Args:
        directory: The checkpoint, local or gs://.

    Raises:
        OSError: It is not there, or cannot be read.
    """
    paths = _files(directory)
    if not paths:
        raise FileNotFoundError(str(directory))
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        sizes = dict(zip(paths, pool.map(_size, paths.values()), strict=True))
        told = [
            name
            for name, kind in kinds_of(sizes).items()
            if ROLES[kind] == "metadata" and sizes[name] <= _METADATA_BYTES
        ]
        contents = dict(zip(told, pool.map(digest_of_file, map(paths.get, told)), strict=True))
    lines = (f"{name} {sizes[name]} {contents.get(name, '')}\n" for name in sorted(paths))
    return digest_of("".join(lines).encode())


def _files(directory: epath.Path) -> dict[PurePosixPath, epath.Path]:
    from etils import epath

    scheme, is_remote, _ = str(directory).partition("://")
    found = {}
    for parent, _, names in directory.walk():
        # On object storage epath gives folders without their scheme, as if they were local.
        lost = is_remote and "://" not in str(parent)
        folder = epath.Path(f"{scheme}://{parent}") if lost else parent
        for name in names:
            path = folder / name
            found[PurePosixPath(path.relative_to(directory).as_posix())] = path
    return found


def _size(path: epath.Path) -> int:
    return int(path.stat().length)


def _record_digest(path: epath.Path) -> str:
    data = path.read_bytes()
    refuse_other_version(data, str(path))
    return hashlib.sha256(data).hexdigest()


def _together(lines: Iterable[str]) -> PointRecords:
    every = list(lines)
    return PointRecords(files=len(every), digest=digest_of("\n".join(every).encode()))
