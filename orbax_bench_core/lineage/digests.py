"""SHA-256 digests of files, records, checkpoints and baselines, as `sha256:<hex>`."""

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Final

import pydantic

from orbax_bench_core.files import MAX_BYTES, AnyPath, at_once, matching, opened, read_json
from orbax_bench_core.inventory import ROLES, file_size, kinds_of, walk
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.records import RunDirectory, unreadable

_CHUNK: Final = 2**16
_METADATA_BYTES: Final = 2**24
"""Of a metadata file beyond this only name and size count."""
_MOST_FILES: Final = 1_000_000
"""Files of a folder that is digested: a manifest names any path, such as that of the root."""
_MOST_OF_A_RUN: Final = 2 * 2**30
"""Bytes of a file or folder that a run has made of its records: none needs a tenth of it."""
_MOUNTS: Final = Path("/proc/self/mountinfo")
_MADE_UP: Final = (
    *("proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs"),
    *("devpts", "mqueue", "bpf", "pstore", "efivarfs", "fusectl", "nsfs", "selinuxfs"),
    "binfmt_misc",
)
"""File systems whose files the kernel makes as one reads."""


class PointDigest(pydantic.BaseModel):
    """The records of one sweep point."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    files: int  # how many there are, warm-ups included
    digest: str  # SHA-256 over name and SHA-256 of each, in the order of their names


def content_digest(data: bytes | str) -> str:
    """Returns the digest of some content; text counts as UTF-8, and names that are no text too."""
    data = data.encode(errors="surrogateescape") if isinstance(data, str) else data
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def file_digest(path: str | os.PathLike[str], most: int | None = None) -> str:
    """Returns the digest of a file, read in pieces.

    Args:
        path: The file, local or gs://.
        most: Bytes that it may have; None for any number.

    Raises:
        OSError: It cannot be read, or is larger (EFBIG).
    """
    if most is not None and file_size(path) > most:
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


def point_digests(root: AnyPath, point_ids: Iterable[str]) -> dict[str, PointDigest]:
    """Returns a digest per sweep point that has records, in the order of `point_ids`.

    Raises:
        UserError: A record cannot be read.
    """

    def files(point_id: str) -> list[AnyPath]:
        # Only these folders: a step of a large run asks for its own points alone.
        return list(matching(root / "records" / point_id, "*/host_*.json"))

    ids = list(point_ids)
    wanted = {id_: paths for id_, paths in zip(ids, at_once(files, ids), strict=True) if paths}
    # One call for all, since most points have but a few; only digests are held.
    found = iter(at_once(_record_digest, (path for paths in wanted.values() for path in paths)))
    return {id_: _of_point(paths, found) for id_, paths in wanted.items()}


def _of_point(paths: Sequence[AnyPath], found: Iterator[str]) -> PointDigest:
    digests = {f"{path.parent.name}/{path.name}": next(found) for path in paths}
    lines = "\n".join(f"{name} {digests[name]}" for name in _in_order(digests))
    return PointDigest(files=len(digests), digest=content_digest(lines))


def records_digest(points: Mapping[str, PointDigest]) -> str:
    """Returns one digest over the records of every point, whatever their order."""
    lines = sorted(f"{point_id} {records.digest}\n" for point_id, records in points.items())
    return content_digest("".join(lines))


def config_digest(run: RunDirectory) -> str:
    """Returns the digest of `run.json`, without the status: suite, points and rules.

    Raises:
        ValueError: `run.json` is no JSON object.
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
        files = _files_below(path)
        sizes = dict(zip(files, at_once(_size, files.values()), strict=True))
        kinds = zip(sizes, kinds_of(map(PurePosixPath, sizes)).values(), strict=True)
        metadata = [
            name
            for name, kind in kinds
            if ROLES[kind] == "metadata" and sizes[name] <= _METADATA_BYTES
        ]
        digests = at_once(file_digest, (files[name] for name in metadata))
        contents = dict(zip(metadata, digests, strict=True))
    except OSError:
        return UNKNOWN
    lines = (f"{name} {sizes[name]} {contents.get(name, '')}\n" for name in _in_order(files))
    return content_digest("".join(lines)) if files else UNKNOWN


def bytes_digest(path: str, most: int | None = None) -> str:
    """Returns a digest over all bytes of a folder, such as a checkpoint.

    Args:
        path: The folder, local or gs://.
        most: Bytes up to which it is read; None for any number.

    Returns:
        `unknown` if it is larger, empty, or cannot be read.
    """
    try:
        files = _files_below(path)
        if most is not None and sum(at_once(_size, files.values())) > most:
            return UNKNOWN
        contents = dict(zip(files, at_once(file_digest, files.values()), strict=True))
    except OSError:
        return UNKNOWN
    listed = "".join(f"{name} {contents[name]}\n" for name in _in_order(contents))
    return content_digest(listed) if files else UNKNOWN


def output_digest(path: AnyPath) -> str:
    """Returns the digest of a file or folder that a run has made of its records.

    Returns:
        A digest; `unknown` if it cannot be read or has too many bytes to be read again for this.
    """
    try:
        if path.is_dir():
            return bytes_digest(str(path), _MOST_OF_A_RUN)
        return file_digest(path, _MOST_OF_A_RUN)
    except OSError:
        return UNKNOWN


def baseline_digest(path: str) -> str:
    """Returns a digest of the measured records that a baseline means now, wherever they lie."""
    from orbax_bench_core.baselines import load_baseline, read_summary

    summary = read_summary(path)
    if summary is not None:
        return content_digest(summary.model_dump_json())
    digests = (content_digest(record.model_dump_json()) for record in load_baseline(path))
    return content_digest("\n".join(sorted(digests)))


def _in_order(names: Iterable[str]) -> list[str]:
    """Returns paths in the order of their parts: a slash comes before all else."""
    return sorted(names, key=lambda name: name.split("/"))


def _size(path: str | os.PathLike[str]) -> int:
    if isinstance(path, str) and not Path(path).is_file():
        raise OSError(errno.EINVAL, "Neither a file nor a folder", path)
    return file_size(path)


def _files_below(path: str) -> dict[str, str | os.PathLike[str]]:
    """Returns the files below a folder, by their path in there."""
    if "://" not in path and _is_made_up(os.path.realpath(path)):
        raise OSError(errno.EINVAL, "Files that the kernel makes as one reads", path)
    found = {}
    for name, file in walk(path, strict=True):
        found[name] = file
        if len(found) > _MOST_FILES:
            said = f"More than {_MOST_FILES:,} files, which are not digested"
            raise OSError(errno.EFBIG, said, path)
    return found


def _is_made_up(folder: str) -> bool:
    """Returns whether a folder lies on a file system of the kernel's own, or has one below it."""
    try:
        lines = _MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:  # no Linux
        return False
    mounts: dict[str, bool] = {}
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = before.split()[4].rstrip("/")
        mounts[f"{mount}/"] = after.split()[0] in _MADE_UP
    inside = f"{folder.rstrip('/')}/"
    around = max((mount for mount in mounts if inside.startswith(mount)), key=len, default="/")
    below = (mounts[mount] for mount in mounts if mount.startswith(inside))
    return mounts.get(around, False) or any(below)


def _record_digest(path: AnyPath) -> str:
    """Returns the SHA-256 of a record, which is not held: of some, none is left but that."""
    try:
        return file_digest(path, MAX_BYTES).removeprefix("sha256:")
    except OSError as error:
        raise unreadable(path, error) from None
