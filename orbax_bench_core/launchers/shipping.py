"""Suites on their way to hosts that share nothing but the run directory."""

from __future__ import annotations

import atexit
import dataclasses
import hashlib
import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from orbax_bench_core.config import UserError
from orbax_bench_core.launchers.launch import Launch

_FOLDER: Final = "suite"
"""Folder in the run directory that a suite is put into."""
_ARCHIVE: Final = ".orbax-bench-suite.zip"
"""Archive of the suite's folder, which lies beside the copy of the suite."""
_SUITE_WORD: Final = 2
"""Index of the suite among the words of a command: `orbax-bench run SUITE`."""
_MOST_BYTES: Final = 10_000_000
_MOST_FILES: Final = 10_000
_SHOWN: Final = 5
_MARKS_OF_OTHERS: Final = ("pyvenv.cfg", "run.json")
"""Files that tell a virtual environment and a run directory from a folder of the suite."""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shipment:
    """A suite, and the command that finds it on every host.

    Attributes:
        command: Words of the command, with the suite as hosts find it.
        target: Folder for the suite in the run directory; empty where nothing has to be sent.
        name: Name of the suite file.
        suite: The suite file, word for word.
        archive: Its folder as a zip archive: benchmark classes may lie beside a suite.
    """

    command: tuple[str, ...]
    target: str = ""
    name: str = ""
    suite: bytes = b""
    archive: bytes = b""

    @property
    def said(self) -> str:
        """One line for people."""
        if not self.target:
            return "hosts reach the suite themselves, and nothing is copied"
        size = (len(self.suite) + len(self.archive)) / 1e3
        return f"{self.name} and the files beside it, {size:.1f} kB, go to {self.target}"

    @property
    def digest(self) -> str:
        """SHA-256 of what is sent, in hex: equal files have equal archives."""
        return hashlib.sha256(self.archive).hexdigest()

    def send(self) -> None:
        """Puts the suite into the run directory.

        Raises:
            UserError: The run directory cannot be written from here.
        """
        from etils import epath

        from orbax_bench_core.records import write_atomically

        if not self.target:
            return
        target = epath.Path(self.target)
        try:
            write_atomically(target / _ARCHIVE, self.archive)
            write_atomically(target / self.name, self.suite)
        except Exception as error:  # noqa: BLE001 - every client of a store has its own errors
            raise UserError(
                f"cannot write the suite to {self.target}: {error}. The hosts read it from there; "
                "run this where the run directory can be written, or name a suite that the image "
                "has with --set suite_in_image=PATH"
            ) from None


def shipment(launch: Launch, *, in_image: str | None = None) -> Shipment:
    """Returns what has to be sent so that every host finds the suite.

    Args:
        launch: What is launched.
        in_image: Path of the suite in the image of the hosts; None sends the one of this machine.

    Raises:
        UserError: The folder of the suite is larger than what may travel.
    """
    suite = launch.suite
    if not suite:
        return Shipment(command=launch.command)
    if in_image is not None or "://" in suite:
        return Shipment(command=_with_suite(launch, in_image or suite))
    name, target = Path(suite).name, f"{launch.output_directory.rstrip('/')}/{_FOLDER}"
    return Shipment(
        command=_with_suite(launch, f"{target}/{name}"),
        target=target,
        name=name,
        suite=Path(suite).read_bytes(),
        archive=_packed(suite, launch.output_directory),
    )


def unshipped(suite: str) -> str:
    """Returns a local copy of a suite that a launcher has sent, with the files beside it.

    Python imports no module from a bucket, and benchmark classes may lie beside a suite.

    Args:
        suite: Path or URI of the suite.

    Returns:
        Its copy, which lives as long as this process; `suite` itself where no launcher has sent it.

    Raises:
        UserError: What was sent cannot be read.
    """
    from etils import epath

    folder, _, name = suite.rpartition("/")
    if PurePosixPath(folder).name != _FOLDER:
        return suite
    archive = epath.Path(folder) / _ARCHIVE
    try:
        if not archive.exists():
            return suite
        data = archive.read_bytes()
    except Exception as error:  # noqa: BLE001 - every client of a store has its own errors
        raise UserError(f"cannot read {archive}: {error}") from None
    copy = Path(tempfile.mkdtemp(prefix="orbax-bench-suite-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    _unpack(data, copy)
    return str(copy / name)


def _with_suite(launch: Launch, suite: str) -> tuple[str, ...]:
    return (*launch.command[:_SUITE_WORD], suite, *launch.command[_SUITE_WORD + 1 :])


def _packed(suite: str, run_directory: str) -> bytes:
    """Returns a suite's folder as a zip archive, without what is hidden, compiled, or a result.

    Raises:
        UserError: It is larger than what may travel.
    """
    root = Path(suite).resolve().parent
    files = list(_files(root, Path(run_directory).resolve()))
    total = sum(path.stat().st_size for path in files)
    if total > _MOST_BYTES or len(files) > _MOST_FILES:
        raise UserError(_too_large(root, files, total))
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            entry = zipfile.ZipInfo(path.relative_to(root).as_posix(), _EPOCH)
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return data.getvalue()


def _unpack(data: bytes, folder: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(folder)


def _files(root: Path, run_directory: Path) -> Iterator[Path]:
    """Yields the files of a suite's folder in a fixed order; too many are left early."""
    found = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith((".", "__pycache__"))
            and Path(folder, name) != run_directory
            and not any(Path(folder, name, mark).exists() for mark in _MARKS_OF_OTHERS)
        )
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith(".") and path.is_file() and os.access(path, os.R_OK):
                yield path
                found += 1
                if found > _MOST_FILES:
                    return


def _too_large(root: Path, files: Sequence[Path], total: int) -> str:
    sizes: dict[str, int] = {}
    for path in files:
        entry = path.relative_to(root).parts[0]
        sizes[entry] = sizes.get(entry, 0) + path.stat().st_size
    largest = sorted(sizes, key=lambda entry: -sizes[entry])[:_SHOWN]
    listed = ", ".join(f"{entry} {sizes[entry] / 1e6:.1f} MB" for entry in largest)
    return (
        f"the folder of the suite, {root}, has {len(files)} files of {total / 1e6:.1f} MB, and "
        f"travels to the hosts: at most {_MOST_FILES} files of {_MOST_BYTES / 1e6:.0f} MB do. The "
        f"largest in it: {listed}. Put the suite and the modules beside it into a folder of their "
        "own, or into the image, with --set suite_in_image=PATH"
    )
