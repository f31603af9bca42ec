"""Archive of a suite and what it names, for hosts that have no copy of their own."""

import ast
import atexit
import contextlib
import dataclasses
import enum
import hashlib
import io
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from orbax_bench_core.config import SuiteSource
from orbax_bench_core.errors import UserError, listed
from orbax_bench_core.files import place, read_at_most
from orbax_bench_core.sweep import suite_folder

MOST_BYTES: Final = 10_000_000
"""Most bytes that travel: it is for a suite and its modules, not for data or environments."""

_MOST_FILES: Final = 10_000
MOST_PACKED_BYTES: Final = 3 * MOST_BYTES
"""Bytes of an archive: files that do not shrink, and two entries for each with a name in it."""
_SHOWN = 5
_LEFT_OUT = ("__pycache__", "node_modules")
_MARKS_OF_OTHERS = ("pyvenv.cfg", "run.json")
"""Files that tell a virtual environment and a run directory from a folder of the suite."""
_SOURCES = ("pyproject.toml", "setup.py")
"""Files that tell the source of a package, which requirements name by its folder."""
_CODE = (".py", ".so")
_MODULE: Final = re.compile(r"[^\W\d]\w*")
_OVERRIDE: Final = re.compile(r"[\w.\[\]*-]+=(.*)", re.S)
_COMPARED = (".py", ".so", ".yaml", ".yml", ".json", ".toml")
"""Suffixes of what Python and a suite read. Beside them lie the logs of launchers, which grow."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of all files, the earliest of a ZIP archive: the same files make the same archive."""


@dataclasses.dataclass(frozen=True)
class SuiteArchive:
    """A suite with the files beside it that it names."""

    name: str  # name of the suite file
    files: tuple[str, ...]  # paths of all files, relative to the folder of the suite
    # SHA-256 in hex of every file that must be the same on all hosts, by its path
    hashes: Mapping[str, str]
    data: bytes  # all files, as a zip archive

    @property
    def digest(self) -> str:
        """SHA-256 of the archive, in hex."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def said(self) -> str:
        """All files by their paths, and their size, for people."""
        return f"{', '.join(self.files)} ({len(self.data) / 1e3:.1f} kB)"


def pack(suite: str, run_directory: str, text: str = "") -> SuiteArchive | None:
    """Packs a suite and what it names of its folder; readers of the archive may read those.

    It names a file or the source of a package by its path relative to the folder, and a module by
    its import path. Of a module the `.py` and `.so` files are taken, and the modules beside the
    suite that it imports. Left out are names that begin with a dot, `__pycache__`, virtual
    environments, run directories, files that cannot be read, and those whose names are no text,
    which no archive can have.

    Args:
        suite: Path of the suite file.
        run_directory: Path of the run directory, which is left out.
        text: The suite, where overrides have changed it; empty for the file as it is.

    Returns:
        The archive, the same bytes for the same files; None for a suite without a folder on this
        machine.

    Raises:
        UserError: What it names is larger than an archive may be.
    """
    folder = suite_folder(suite)
    if folder is None:
        return None
    text = text or read_at_most(suite).decode(errors="replace")
    sizes = dict(_sizes(folder, Path(suite).name, text, Path(run_directory).resolve()))
    _check_size(folder, sizes)
    archive, hashes = io.BytesIO(), {}
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        for path, size in sizes.items():
            with (folder / path).open("rb") as file:
                content = file.read(size)  # a log may have grown since
            files.writestr(zipfile.ZipInfo(path, _EPOCH), content, zipfile.ZIP_DEFLATED)
            if path.endswith(_COMPARED):
                hashes[path] = hashlib.sha256(content).hexdigest()
    return SuiteArchive(Path(suite).name, tuple(sizes), hashes, archive.getvalue())


def unpack(data: bytes, folder: Path, *, digest: str = "") -> None:
    """Writes packed files into a folder.

    Args:
        data: The archive.
        folder: An empty folder.
        digest: SHA-256 that the archive must have; empty for any.

    Raises:
        ValueError: It is another one, no archive, or larger than one may be.
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


def differing(hashes: Mapping[str, str], suite: str) -> str:
    """Returns which files of a suite's folder differ from those of process 0; empty for none."""
    folder = suite_folder(suite) or Path.cwd()
    differ = [path for path, expected in hashes.items() if _hash(folder / path) != expected]
    return f"{listed(differ, _SHOWN)} in {folder}" if differ else ""


def _hash(path: Path) -> str | None:
    try:
        return hashlib.sha256(read_at_most(path)).hexdigest()
    except OSError:
        return None


def _sizes(root: Path, suite: str, text: str, run_directory: Path) -> Iterator[tuple[str, int]]:
    """Yields files that travel, by their paths in a suite's folder, with the bytes of each."""
    texts = {suite, *_texts(_data(text))}
    taken = {path for text in texts for path in _files_named(root, text, run_directory)}
    modules = {found.group() for text in texts if (found := _MODULE.match(text))}
    waiting = list(modules)
    while waiting and len(taken) <= _MOST_FILES:
        new = set(_files_of_module(root, waiting.pop(), run_directory)) - taken
        imported = {name for path in new for name in _find_imports(path)} - modules
        taken, modules, waiting = taken | new, modules | imported, [*waiting, *imported]
    for path in sorted(taken)[: _MOST_FILES + 1]:
        yield path.relative_to(root).as_posix(), path.stat().st_size


def _data(text: str) -> object:
    """Returns the parsed YAML, or None if it is not YAML, as in a suite that is refused later."""
    with contextlib.suppress(UserError):
        return SuiteSource(text).data
    return None


def _texts(data: object) -> Iterator[str]:
    """Yields the texts in plain data, and in the values of overrides among them."""
    if isinstance(data, Mapping):
        for item in data.items():
            yield from _texts(item)
    elif isinstance(data, list | tuple):
        for item in data:
            yield from _texts(item)
    elif isinstance(data, str):
        yield data
        if data.startswith("-"):  # such as `-r requirements.txt`
            yield data.rpartition(" ")[2]
        elif override := _OVERRIDE.fullmatch(data):
            yield from _texts(_data(override[1]))


def _files_named(root: Path, text: str, run_directory: Path) -> Iterator[Path]:
    """Yields the file that a text names, or the files of the source of a package."""
    path = Path(os.path.normpath(root / text.partition("\0")[0]))
    with contextlib.suppress(OSError):
        if not path.is_relative_to(root) or path == root:
            return
        if any((path / mark).is_file() for mark in _SOURCES):
            yield from _files_in(path, run_directory)
        elif _may_travel(path):
            yield path


def _files_of_module(root: Path, name: str, run_directory: Path) -> Iterator[Path]:
    candidates = [root / f"{name}.py", *root.glob(f"{name}.*.so"), root / f"{name}.so"]
    yield from filter(_may_travel, candidates)
    if _is_of_the_suite(root / name, run_directory):
        yield from (p for p in _files_in(root / name, run_directory) if p.suffix in _CODE)


def _find_imports(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(read_at_most(str(path))) if path.suffix == ".py" else ast.Module([], [])
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return  # its import will say why
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _files_in(root: Path, run_directory: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [
            name for name in folders if _is_of_the_suite(Path(folder, name), run_directory)
        ]
        yield from filter(_may_travel, (Path(folder, name) for name in names))


def _may_travel(path: Path) -> bool:
    # Bytes that Python could not read as text are no name for an archive.
    is_text = str(path).encode(errors="replace").decode() == str(path)
    return is_text and not path.name.startswith(".") and path.is_file() and os.access(path, os.R_OK)


def _is_of_the_suite(folder: Path, run_directory: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _LEFT_OUT or folder == run_directory:
        return False
    return not any((folder / mark).exists() for mark in _MARKS_OF_OTHERS)


def _check_size(folder: Path, sizes: Mapping[str, int]) -> None:
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
        f"what the suite names in {folder} has {what}, and travels to the other hosts: at most "
        f"{_megabytes(MOST_BYTES)} do. The largest in it: {listed}. Name large files by a path "
        "that every host can read"
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


class Shipped(enum.StrEnum):
    """Names in a run directory of what a launcher has sent."""

    FOLDER = "suite"  # folder that the suite is put into
    # archive of the suite's own folder, which lies beside its copy
    ARCHIVE = ".orbax-bench-suite.zip"


def unshipped(suite: str) -> str:
    """Returns a local copy of a suite that a launcher has sent, with the files beside it.

    Raises:
        UserError: The archive that a launcher named cannot be read.
    """
    # Python imports no module from a bucket, and benchmark classes may lie beside a suite.
    folder, _, name = suite.rpartition("/")
    if PurePosixPath(folder).name != Shipped.FOLDER:
        return suite
    archive = place(folder) / Shipped.ARCHIVE
    try:
        if not archive.exists():
            return suite
        copy = Path(tempfile.mkdtemp(prefix="orbax-bench-suite-"))
        atexit.register(shutil.rmtree, copy, ignore_errors=True)
        unpack(read_at_most(archive, MOST_PACKED_BYTES), copy)
    except Exception as error:  # noqa: BLE001 - every client of a store has its own errors
        raise UserError(
            f"cannot read {archive}: {error}; launch the run again, or name the suite by a path of "
            f"another folder than {Shipped.FOLDER}"
        ) from None
    return str(copy / name)
