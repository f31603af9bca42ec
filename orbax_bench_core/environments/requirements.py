"""The requirements of an environment: names with versions, wheels, and folders."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

from orbax_bench_core.environments.failure import EnvironmentFailed

_ARCHIVES = (".whl", ".tar.gz", ".zip")
_DERIVED = ("build", "dist")
_DERIVED_ANYWHERE = ("__pycache__", "node_modules")
_LOCAL = re.compile(
    r"(?P<name>[\w.-]+(\[[^]]*\])?\s*@\s*)?(?P<url>file://)?(?P<path>[^\[]*)(?P<extras>.*)"
)


@dataclasses.dataclass(frozen=True)
class Requirement:
    """One requirement.

    Attributes:
        given: The suite's text.
        content: What tells it from others: the text, or a digest of what lies at the path.
        path: The wheel, or the folder that one is built from; None when it is not here.
        name: What stands before the path, such as `orbax-checkpoint @ `.
        extras: What stands behind it, such as `[gcs]`.
    """

    given: str
    content: str
    path: Path | None = None
    name: str = ""
    extras: str = ""

    def at(self, path: Path) -> str:
        """Returns the requirement as uv is told, with what it names at `path`."""
        place = path.as_uri() if self.name else str(path)
        return f"{self.name}{place}{self.extras}"


def read_requirement(given: str, folder: Path) -> Requirement:
    """Reads one requirement of a suite file.

    Args:
        given: As pip spells it: `name==version`, a URL, or the path of a wheel or a folder.
        folder: What a relative path is relative to.

    Raises:
        EnvironmentFailed: It names a path at which there is nothing, or asks for more than
            something to install.
    """
    given = given.strip()
    if given.startswith("-"):
        raise EnvironmentFailed(
            f"{given!r} is an option of pip, not a requirement; give name==version or a path (a "
            "folder without -e: what is measured must not change under the measurement)"
        )
    found = _LOCAL.fullmatch(given)
    if found is None or not _is_path(found["path"], named=bool(found["name"])):
        return Requirement(given, given)
    place = found["path"].strip()
    place = urllib.parse.unquote(place) if found["url"] else place
    path = Path(os.path.normpath(folder / Path(place).expanduser()))
    if not path.exists():
        raise EnvironmentFailed(f"{given!r} names {path}, where there is nothing; build it first")
    name, extras = found["name"] or "", found["extras"]
    return Requirement(given, f"{name}{_digest(path)}{extras}", path, name, extras)


def _is_path(text: str, *, named: bool) -> bool:
    if "://" in text or text.startswith("git+"):
        return False
    return named or "/" in text or text.startswith((".", "~")) or text.endswith(_ARCHIVES)


def _digest(path: Path) -> str:
    """Returns a digest of a file, or of the names and contents of all source files in a folder."""
    whole = hashlib.sha256()
    if path.is_file():
        whole.update(path.name.encode() + path.read_bytes())
        return whole.hexdigest()
    for file in _sources(path):
        whole.update(f"{file.relative_to(path).as_posix()}\0".encode())
        whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


def _sources(root: Path) -> Iterator[Path]:
    """Yields the files of a project in a fixed order, without those that tools left there."""
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _DERIVED_ANYWHERE
            and not name.endswith(".egg-info")
            and not (directory == str(root) and name in _DERIVED)
        )
        for name in sorted(names):
            file = Path(directory) / name
            if not name.endswith(".pyc") and file.is_file():
                yield file
