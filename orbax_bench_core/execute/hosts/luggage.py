"""Luggage of a run: the suite and its folder, for hosts that have no copy of their own."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.files import read_at_most
from orbax_bench_core.sweep import suite_folder

if TYPE_CHECKING:
    from etils import epath

MOST_BYTES: Final = 10_000_000
"""Most bytes that travel: it is for a suite and its modules, not for data or environments."""

_MOST_FILES: Final = 10_000
MOST_PACKED_BYTES: Final = 3 * MOST_BYTES
"""Bytes of an archive: files that do not shrink, and two entries for each with a name in it."""
_SHOWN = 5
_LEFT_OUT = ("__pycache__", "node_modules")
_MARKS_OF_OTHERS = ("pyvenv.cfg", "run.json")
"""Files that tell a virtual environment and a run directory from a folder of the suite."""
_COMPARED = (".py", ".so", ".yaml", ".yml", ".json", ".toml")
"""Suffixes of what Python and a suite read. Beside them lie the logs of launchers, which grow."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclasses.dataclass(frozen=True)
class Luggage:
    """A suite with the files of its folder.

    Attributes:
        name: Name of the suite file.
        hashes: SHA-256 in hex of every file that must be the same on all hosts, by its path.
        data: All files, as a zip archive.
    """

    name: str
    hashes: Mapping[str, str]
    data: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of the archive, in hex."""
        return hashlib.sha256(self.data).hexdigest()


def pack(suite: str, run_directory: str) -> Luggage | None:
    """Packs a suite and its folder, without what is hidden, compiled, or a result.

    Left out are names that begin with a dot, `__pycache__`, virtual environments, run directories,
    files that cannot be read, and those whose names are no text, which no archive can have.

    Args:
        suite: The suite file.
        run_directory: The run directory, which may lie in that folder.

    Returns:
        None where the suite lies in no folder of this machine.

    Raises:
        UserError: That is more than may travel.
    """
    folder = suite_folder(suite)
    if folder is None:
        return None
    sizes = dict(_sizes(folder, without=Path(run_directory).resolve()))
    _check_size(folder, sizes)
    archive, hashes = io.BytesIO(), {}
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        for path, content in _contents(folder, sizes):
            files.writestr(zipfile.ZipInfo(path, _EPOCH), content, zipfile.ZIP_DEFLATED)
            if path.endswith(_COMPARED):
                hashes[path] = hashlib.sha256(content).hexdigest()
    return Luggage(Path(suite).name, hashes, archive.getvalue())


def unpack(data: bytes, folder: Path, *, digest: str = "") -> None:
    """Writes packed files into a folder.

    Args:
        data: The archive.
        folder: The folder, which need not exist.
        digest: SHA-256 of the archive, in hex; empty where nobody knows it.

    Raises:
        ValueError: It is not the archive with this digest, no archive, or more than may travel.
        OSError: A file cannot be written.
    """
    if digest and hashlib.sha256(data).hexdigest() != digest:
        raise ValueError("the copy of the suite is not the one that process 0 has written")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as files:
            entries = files.infolist()
            size = sum(entry.file_size for entry in entries)
            if size > MOST_BYTES or len(entries) > _MOST_FILES:
                raise ValueError(f"{len(entries)} files with {_megabytes(size)}: none has so much")
            files.extractall(folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"not an archive of a suite: {error}") from None


def unpack_file(archive: epath.Path, folder: Path) -> None:
    """Writes the files of an archive into a folder.

    Args:
        archive: The archive, local or gs://.
        folder: The folder, which need not exist.

    Raises:
        ValueError: It is no archive, or more than may travel.
        OSError: It cannot be read, is larger than any, or a file cannot be written.
    """
    unpack(read_at_most(archive, MOST_PACKED_BYTES), folder)


def differing(hashes: Mapping[str, str], suite: str) -> str:
    """Returns which files of a suite's folder differ from those of process 0; empty for none.

    Args:
        hashes: Those of process 0.
        suite: The suite file on this host.
    """
    folder = suite_folder(suite) or Path.cwd()
    differ = [path for path, expected in hashes.items() if _hash(folder / path) != expected]
    if not differ:
        return ""
    more = f" and {len(differ) - _SHOWN} more" if len(differ) > _SHOWN else ""
    return f"{', '.join(differ[:_SHOWN])}{more} in {folder}"


def _hash(path: Path) -> str | None:
    try:
        return hashlib.sha256(read_at_most(path)).hexdigest()
    except OSError:
        return None


def _sizes(root: Path, *, without: Path) -> Iterator[tuple[str, int]]:
    """Yields files below a folder, by their paths relative to it, and the bytes of each.

    The order is fixed; a folder that has too many files is left early.
    """
    seen = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            name for name in folders if _is_of_the_suite(Path(folder, name), without)
        )
        for name in sorted(names):
            path = Path(folder, name)
            inside = path.relative_to(root).as_posix()
            if name.startswith(".") or not path.is_file() or not os.access(path, os.R_OK):
                continue
            if _is_text(inside):
                seen += 1
                yield inside, path.stat().st_size
                if seen > _MOST_FILES:
                    return


def _is_text(name: str) -> bool:
    """Returns whether a name is text, and not bytes that Python could not read as such."""
    return name.encode(errors="replace").decode() == name


def _is_of_the_suite(folder: Path, run_directory: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _LEFT_OUT or folder == run_directory:
        return False
    return not any((folder / mark).exists() for mark in _MARKS_OF_OTHERS)


def _contents(folder: Path, sizes: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
    for path, size in sizes.items():
        with (folder / path).open("rb") as file:
            yield path, file.read(size)  # a log may have grown since


def _check_size(folder: Path, sizes: Mapping[str, int]) -> None:
    """Checks that files may travel.

    Raises:
        UserError: They are too many or too large.
    """
    total, more = sum(sizes.values()), len(sizes) > _MOST_FILES
    if total <= MOST_BYTES and not more:
        return
    entries: dict[str, int] = {}
    for path, size in sizes.items():
        entry = path.partition("/")[0]
        entry = f"{entry}/" if "/" in path else entry
        entries[entry] = entries.get(entry, 0) + size
    largest = sorted(entries.items(), key=lambda entry: -entry[1])[:_SHOWN]
    listed = ", ".join(f"{entry} {_megabytes(size)}" for entry, size in largest)
    what = f"more than {_MOST_FILES} files" if more else _megabytes(total)
    raise UserError(
        f"the folder of the suite, {folder}, has {what}, and travels to the other hosts: at most "
        f"{_megabytes(MOST_BYTES)} do. The largest in it: {listed}. Put the suite and the modules "
        "beside it into a folder of their own"
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
