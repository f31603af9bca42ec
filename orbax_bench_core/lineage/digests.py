"""SHA-256 digests of files, records, checkpoints and baselines, as `sha256:<hex>`."""

from __future__ import annotations

import concurrent.futures
import errno
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Final

import pydantic

from orbax_bench_core.baselines import load_baseline, read_summary
from orbax_bench_core.files import MAX_BYTES, matching, opened, read_json
from orbax_bench_core.inventory import ROLES, kinds_of
from orbax_bench_core.lineage.trees import files_below
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.records import RunDirectory, unreadable

if TYPE_CHECKING:
    from etils import epath

_AT_ONCE: Final = 16
"""An object store answers many requests at once as fast as one."""
_CHUNK: Final = 2**16
_METADATA_BYTES: Final = 2**24
"""Of a metadata file beyond this only name and size count."""


MOST_OF_A_RUN: Final = 2 * 2**30
"""Bytes of a file or folder that a run has made of its records: none needs a tenth of it."""


class PointRecords(pydantic.BaseModel):
    """The records of one sweep point.

    Attributes:
        files: How many there are, warm-ups included.
        digest: SHA-256 over name and SHA-256 of each, in the order of their names.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    files: int
    digest: str


def content_digest(data: bytes | str) -> str:
    """Returns the digest of some content; text counts as UTF-8, and names that are no text too."""
    data = data.encode(errors="surrogateescape") if isinstance(data, str) else data
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def file_digest(path: epath.PathLike, most: int | None = None) -> str:
    """Returns the digest of a file, read in pieces."""
    if most is not None and _size(path) > most:
        raise OSError(errno.EFBIG, f"Larger than {most:,} bytes, which none is", os.fspath(path))
    digest = hashlib.sha256()
    with opened(os.fspath(path)) as file:
        if _is_empty(file):
            return content_digest(b"")
        while piece := file.read(_CHUNK):
            digest.update(piece)
    return f"sha256:{digest.hexdigest()}"


def _is_empty(file: IO[bytes]) -> bool:
    """Returns whether a local file has no bytes; the kernel makes some that never end as one reads.

    These, below `/proc`, have none by their size.
    """
    try:
        return os.fstat(file.fileno()).st_size == 0
    except OSError:  # of a store
        return False


class RecordDigests:
    """Digests of the records of sweep points, whose files are read for something else as well."""

    def __init__(self, root: epath.Path, point_ids: Iterable[str]) -> None:
        """Has read nothing yet."""
        self._root, self._ids = root, tuple(point_ids)
        self._point, self._digests = "", dict[str, str]()
        self._unread: set[str] = set()
        self._found: dict[str, PointRecords] = {}

    def add(self, path: str, data: bytes | None) -> None:
        """Takes a file of a point, after those of the points before it."""
        _, point_id, name = path.split("/", 2)
        if point_id != self._point:
            self._end_point()
            self._point = point_id
        if data is None:
            self._unread.add(point_id)
        else:
            self._digests[name] = hashlib.sha256(data).hexdigest()

    def found(self) -> dict[str, PointRecords]:
        """Returns a digest per point that has records; files that were not added are read."""
        self._end_point()
        rest = (id_ for id_ in self._ids if id_ not in self._found or id_ in self._unread)
        every = {**self._found, **point_digests(self._root, rest)}
        return {id_: every[id_] for id_ in self._ids if id_ in every}

    def _end_point(self) -> None:
        if self._digests:
            self._found[self._point] = _point_records(self._digests)
            self._digests = {}


def _point_records(digests: Mapping[str, str]) -> PointRecords:
    """Returns the digest of a point from those of its files, by `<repeat>/<file>`."""
    names = _in_order(digests)
    lines = "\n".join(f"{name} {digests[name]}" for name in names)
    return PointRecords(files=len(names), digest=content_digest(lines))


def point_digests(root: epath.Path, point_ids: Iterable[str]) -> dict[str, PointRecords]:
    """Returns a digest per sweep point that has records, in the order of `point_ids`."""

    def files(point_id: str) -> list[epath.Path]:
        # Only these folders: a step of a large run asks for its own points alone.
        return list(matching(root / "records" / point_id, "*/host_*.json"))

    ids = list(point_ids)
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        listed = zip(ids, pool.map(files, ids), strict=True)
        wanted = {point_id: paths for point_id, paths in listed if paths}
        # One call for all, since most points have but a few; only digests are held.
        digests = pool.map(_record_digest, (path for paths in wanted.values() for path in paths))
        return {
            point_id: _point_records(
                {f"{path.parent.name}/{path.name}": next(digests) for path in paths}
            )
            for point_id, paths in wanted.items()
        }


def records_digest(points: Mapping[str, PointRecords]) -> str:
    """Returns one digest over the records of every point, whatever their order."""
    lines = sorted(f"{point_id} {records.digest}\n" for point_id, records in points.items())
    return content_digest("".join(lines))


def config_digest(run: RunDirectory) -> str:
    """Returns the digest of `run.json`: the suite, its points and its rules.

    The status does not count: it tells how far the run is.
    """
    content = read_json(run.root / "run.json")
    if not isinstance(content, dict):
        raise ValueError("run.json is no JSON object")
    content.pop("status", None)
    return content_digest(json.dumps(content, sort_keys=True, separators=(",", ":")))


def checkpoint_digest(path: str) -> str:
    """Returns a digest of a checkpoint that leaves its arrays unread.

    It covers the name and size of every file, and the content of the metadata files (of up to
    16 MiB each): manifests, trees and array metadata, whatever the format. A change of values that
    keeps every name and size, as in Zarr without OCDBT, is not seen; OCDBT renames its data.
    """
    try:
        files = files_below(path, checkpoint=True)
        with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
            sizes = dict(zip(files, pool.map(_size, files.values()), strict=True))
            kinds = kinds_of(map(PurePosixPath, sizes)).values()
            metadata = [
                name
                for name, kind in zip(sizes, kinds, strict=True)
                if ROLES[kind] == "metadata" and sizes[name] <= _METADATA_BYTES
            ]
            digests = pool.map(file_digest, (files[name] for name in metadata))
            contents = dict(zip(metadata, digests, strict=True))
    except OSError:
        return UNKNOWN
    lines = (f"{name} {sizes[name]} {contents.get(name, '')}\n" for name in _in_order(files))
    return content_digest("".join(lines)) if files else UNKNOWN


def bytes_digest(
    path: str, most: int | None = None, known: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Returns a digest over all bytes of a folder, such as a checkpoint."""
    try:
        files = files_below(path)
        contents = {name: known.get(str(file), "") for name, file in files.items()}
        unread = {name: files[name] for name, digest in contents.items() if not digest}
        with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
            if most is not None and sum(pool.map(_size, unread.values())) > most:
                return UNKNOWN
            contents |= zip(unread, pool.map(file_digest, unread.values()), strict=True)
    except OSError:
        return UNKNOWN
    return folder_digest(contents) if files else UNKNOWN


def folder_digest(contents: Mapping[str, str]) -> str:
    """Returns the digest of a folder, as `bytes_digest` does."""
    return content_digest("".join(f"{name} {contents[name]}\n" for name in _in_order(contents)))


def output_digest(path: epath.Path, known: Mapping[str, str] = MappingProxyType({})) -> str:
    """Returns the digest of a file or folder that a run has made of its records."""
    if str(path) in known:
        return known[str(path)]
    try:
        if path.is_dir():
            return bytes_digest(str(path), MOST_OF_A_RUN, known)
        return file_digest(path, MOST_OF_A_RUN)
    except OSError:
        return UNKNOWN


def baseline_digest(path: str) -> str:
    """Returns a digest of the measured records that a baseline means at this moment.

    Where they lie does not count: a promotion that changes what a registry means changes it.
    """
    summary = read_summary(path)
    if summary is not None:
        return content_digest(summary.model_dump_json())
    digests = (content_digest(record.model_dump_json()) for record in load_baseline(path))
    return content_digest("\n".join(sorted(digests)))


def _in_order(names: Iterable[str]) -> list[str]:
    """Returns paths in the order of their parts: a slash comes before all else."""
    return sorted(names, key=lambda name: name.split("/"))


def _size(path: epath.PathLike) -> int:
    from etils import epath

    return int(epath.Path(path).stat().length)


def _record_digest(path: epath.Path) -> str:
    """Returns the SHA-256 of a record, which is not held: of some, none is left but that."""
    try:
        return file_digest(path, MAX_BYTES).removeprefix("sha256:")
    except OSError as error:
        raise unreadable(path, error) from None
