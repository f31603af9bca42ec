"""Making of a suite's environments: requirements, their digests, wheels, virtual environments."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from orbax_bench_core.config import EnvironmentConfig
from orbax_bench_core.environments.interpreter import (
    Interpreter,
    cache_folder,
    check,
    find_executable,
    only_process,
    worker_variables,
)
from orbax_bench_core.environments.resolve import LOCK, own_versions, resolve, worker_requirements
from orbax_bench_core.environments.supported import EnvironmentFailed
from orbax_bench_core.environments.uv import run_uv
from orbax_bench_core.files import opened

_AT_ONCE = 4
_READY = "ready.json"
_NAMED = ("orbax-checkpoint", "jax")
_ARCHIVES = (".whl", ".tar.gz", ".zip")
_DERIVED = ("build", "dist")
_DERIVED_ANYWHERE = ("__pycache__", "node_modules")

_LOCAL = re.compile(
    r"(?P<name>[\w.-]+(\[[^]]*\])?\s*@\s*)?(?P<url>file://)?(?P<path>[^\[]*)(?P<extras>.*)"
)
_SCHEMA = 1
"""Version of the layout of an environment; another one is made again."""


def make_environments(
    configs: Sequence[EnvironmentConfig],
    *,
    folder: Path | None,
    say: Callable[[str], None],
    cache: Path | None = None,
) -> dict[str, Interpreter | EnvironmentFailed]:
    """Makes the environments of a suite, several at once, or finds those that were made before.

    Relative paths are those in the suite's `folder`; of a suite that has none, those in the current
    directory.

    Args:
        configs: What each environment holds, each with a name of its own.
        folder: Folder of the suite; None for a suite that has none.
        say: Takes lines for people.
        cache: Where environments are kept; None for the user's cache.

    Returns:
        By name: the interpreter, or why there is none.
    """
    if not configs:
        return {}
    maker = _Maker((folder or Path.cwd()).absolute(), folder, cache or cache_folder(), say)
    with ThreadPoolExecutor(min(len(configs), _AT_ONCE), "environment") as threads:
        return dict(
            zip([config.name for config in configs], threads.map(maker.make, configs), strict=True)
        )


def is_made(config: EnvironmentConfig, *, folder: Path) -> bool:
    """Returns whether an environment exists already, so that nothing has to be installed.

    Requirements that cannot be read count as not made; making them says what is wrong.
    """
    try:
        requirements = [read_requirement(text, folder.absolute()) for text in config.requirements]
    except EnvironmentFailed:
        return False
    return (cache_folder() / key(requirements) / _READY).exists()


@dataclasses.dataclass(frozen=True)
class _Maker:
    folder: Path
    suite_folder: Path | None
    cache: Path
    tell: Callable[[str], None]
    _telling: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def make(self, config: EnvironmentConfig) -> Interpreter | EnvironmentFailed:
        try:
            if config.interpreter is not None:
                executable = find_executable(config.interpreter, self.folder)
                interpreter = Interpreter(str(executable), self._variables())
                calls_itself, _ = check(interpreter)
                return dataclasses.replace(interpreter, calls_itself=calls_itself)
            return self._made(config)
        except EnvironmentFailed as failure:
            return failure
        except OSError as error:
            return EnvironmentFailed(f"cannot be made in {self.cache}: {error}")

    def _variables(self) -> dict[str, str]:
        return worker_variables(self.cache, self.suite_folder)

    def _made(self, config: EnvironmentConfig) -> Interpreter:
        requirements = [read_requirement(text, self.folder) for text in config.requirements]
        home = self.cache / key(requirements)
        interpreter = Interpreter(str(home / "venv" / "bin" / "python"), self._variables())
        with only_process(home, lambda: self._say(config, "waiting for another process's")):
            # The link to the Python that it was made with may have lost its target since.
            if not ((home / _READY).exists() and Path(interpreter.executable).exists()):
                started = time.monotonic()
                self._say(config, "making it")
                versions = self._make(home, requirements, interpreter)
                listed = ", ".join(f"{name} {versions[name]}" for name in _NAMED)
                self._say(config, f"made in {time.monotonic() - started:.0f} s: {listed}")
        return interpreter

    def _make(
        self, home: Path, requirements: Sequence[Requirement], interpreter: Interpreter
    ) -> dict[str, str]:
        shutil.rmtree(home, ignore_errors=True)  # an earlier try that did not come to its end
        home.mkdir(parents=True)
        resolve(
            home,
            [installable(home, requirement, self.folder) for requirement in requirements],
            self.folder,
        )
        run_uv("venv", "--python", sys.executable, str(home / "venv"), folder=self.folder)
        run_uv(
            *("pip", "install", "--no-deps", "--requirements", str(home / LOCK)),
            *("--python", interpreter.executable),
            folder=self.folder,
        )
        _, versions = check(interpreter)
        # Last of all: an environment without this file is made again from the beginning.
        unfinished = home / f"{_READY}.tmp"
        unfinished.write_text(json.dumps({"versions": versions}, indent=1))
        unfinished.replace(home / _READY)
        return versions

    def _say(self, config: EnvironmentConfig, what: str) -> None:
        with self._telling:
            self.tell(f"environment {config.name}: {what}")


@dataclasses.dataclass(frozen=True)
class Requirement:
    """One requirement: the suite's text, and what tells it from others.

    That is a digest of what lies at `path`, a wheel or a folder that one is built from, where it
    names one. `name` is what stands before that, such as `orbax-checkpoint @ `, and `extras` what
    stands behind it, such as `[gcs]`.
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
        given: A requirement as pip reads it, or a path of a wheel, archive or folder.
        folder: The folder of the suite, by which relative paths go.

    Returns:
        The requirement; of a path its content has the digest, so that a changed file makes another
        environment.

    Raises:
        EnvironmentFailed: It is an option of pip, or a path at which there is neither file nor
            folder.
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
    if not path.is_file() and not path.is_dir():
        raise EnvironmentFailed(f"{given!r} names {path}, which is neither a file nor a folder")
    name, extras = found["name"] or "", found["extras"]
    return Requirement(given, f"{name}{_digest(path)}{extras}", path, name, extras)


def _is_path(text: str, *, named: bool) -> bool:
    if "://" in text or text.startswith("git+"):
        return False
    return named or "/" in text or text.startswith((".", "~")) or text.endswith(_ARCHIVES)


def _digest(path: Path) -> str:
    """Returns a digest of a file, or of the names and contents of all source files in a folder."""
    whole = hashlib.sha256()
    for file in [path] if path.is_file() else _sources(path):
        name = file.relative_to(path.parent if path == file else path).as_posix()
        whole.update(os.fsencode(f"{name}\0"))
        one = hashlib.sha256()
        with opened(file) as content:
            while piece := content.read(2**20):
                one.update(piece)
        whole.update(one.digest())
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


def key(requirements: Sequence[Requirement]) -> str:
    """Returns a digest of an environment's content, the same for the same requirements.

    Returns:
        16 hex digits of a SHA-256 of all that decides what is installed: the requirements with
        digests of local files, what a worker needs, the versions here, and the Python.
    """
    content = {
        "schema": _SCHEMA,
        "requirements": [requirement.content for requirement in requirements],
        "worker": worker_requirements(),
        "preferred": own_versions(),
        "python": [sys.version, os.path.realpath(sys.executable), platform.machine()],
    }
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def installable(home: Path, requirement: Requirement, folder: Path) -> str:
    """Returns a requirement with a wheel of a folder's present sources in place of the folder.

    Left to itself, uv takes a folder's wheel from its cache as long as the project file is as it
    was, whatever happened to the sources. The wheel is built below `home`.
    """
    if requirement.path is None:
        return requirement.given
    if requirement.path.is_file():
        return requirement.at(requirement.path)
    wheels = Path(tempfile.mkdtemp(prefix="wheel-", dir=home))
    run_uv(
        *("build", "--wheel", "--python", sys.executable),
        *("--out-dir", str(wheels), str(requirement.path)),
        folder=folder,
    )
    return requirement.at(next(wheels.glob("*.whl")))
