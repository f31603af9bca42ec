"""Interpreters: a Python with the variables of a worker, and the check that it can run one."""

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from orbax_bench_core.environments.resolve import own_version, refuse_release, works_with
from orbax_bench_core.environments.supported import (
    OLDEST_PYTHON,
    WORKER_MODULES,
    WORKER_REQUIREMENTS,
    EnvironmentFailed,
)
from orbax_bench_core.errors import shortened
from orbax_bench_core.files import user_cache

_OURS = "orbax-bench"


def cache_folder() -> Path:
    """Returns where environments are kept: `ORBAX_BENCH_CACHE`, or below the user's cache."""
    chosen = os.environ.get("ORBAX_BENCH_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return user_cache("environments")


@contextlib.contextmanager
def only_process(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Holds the lock of one environment; the kernel drops it when its holder ends, however.

    Args:
        folder: That of the environment; the lock is a file next to it.
        waiting: Called once if another process holds it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def source_folder(cache: Path) -> Path:
    """Returns a folder in `cache` that holds this package alone, made when it is missing.

    Every environment's worker takes the package from there, so both sides of a comparison are
    measured by the same code.
    """
    package = Path(__file__).resolve().parents[1]
    version = own_version(_OURS)
    digest = hashlib.sha256(f"{package} {version}".encode()).hexdigest()[:16]
    folder = cache / f"source-{digest}"
    if folder.exists():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as beside:
        made = Path(beside) / folder.name
        made.mkdir()
        (made / package.name).symlink_to(package, target_is_directory=True)
        if version is not None:  # which a worker reads there
            metadata = made / f"orbax_bench-{version}.dist-info" / "METADATA"
            metadata.parent.mkdir()
            metadata.write_text(f"Metadata-Version: 2.1\nName: {_OURS}\nVersion: {version}\n")
        try:
            made.rename(folder)
        except OSError:  # another process has just made it
            if not folder.exists():
                raise
    return folder


_PROBE = Path(__file__).with_name("probe.py")
_FIRST_S: Final = 4.0
"""Seconds until the first word: a Python says one before it imports anything."""
_PROBE_S: Final = 120.0
"""Seconds until its end."""
_MOST_BYTES: Final = 2**20
_ANSWERS = ("python", "executable", "missing", "broken", "versions")
_SHADOWED = ("jax", "jaxlib", "numpy", "orbax/checkpoint", "tensorstore")


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """A Python that can run a worker, with the variables to set for that.

    `calls_itself` is its `sys.executable` where that may be another path, as of a script that
    starts a Python; empty if it is the same.
    """

    executable: str
    variables: Mapping[str, str]
    calls_itself: str = ""

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Returns the environment of a process of it: the places of `base` come after our own."""
        places = (each.get("PYTHONPATH", "") for each in (self.variables, base))
        path = os.pathsep.join(filter(None, places))
        return {**base, **self.variables, "PYTHONPATH": path}


def find_executable(given: str, folder: Path) -> Path:
    """Returns the path of an interpreter that a suite names.

    Args:
        given: A name on `PATH`, the path of a Python, or the folder of a virtual environment.
        folder: The folder of the suite, by which relative paths go.

    Raises:
        EnvironmentFailed: There is no such program.
    """
    if "/" not in given and not given.startswith("~"):
        found = shutil.which(given)
        if found is None:
            raise EnvironmentFailed(f"there is no program {given!r} on PATH; give its path")
        return Path(found).absolute()
    # Links stay: the one in a virtual environment says which environment it is.
    path = folder / Path(given).expanduser()
    path = path / "bin" / "python" if path.is_dir() else path
    if not os.access(path, os.X_OK) or path.is_dir():
        raise EnvironmentFailed(f"{path} is not a program; give the path of a Python")
    return path


def worker_variables(cache: Path, folder: Path | None) -> dict[str, str]:
    """Returns the variables with which an interpreter finds the worker, whose source `cache` links.

    Raises:
        EnvironmentFailed: The suite's `folder` or `PYTHONPATH` has a library of the environment.
    """
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    for place in filter(None, ["" if folder is None else str(folder), *given]):
        for library in _SHADOWED:
            if (Path(place) / library).is_dir():
                raise EnvironmentFailed(
                    f"{Path(place) / library} would be imported instead of the environment's own; "
                    "keep the suite file in another folder, and that folder off PYTHONPATH"
                )
    return {
        "PYTHONPATH": str(source_folder(cache)),
        "PYTHONHOME": "",
        # Without bytecode every worker would compile JAX.
        "PYTHONDONTWRITEBYTECODE": "",
    }


def check(interpreter: Interpreter) -> tuple[str, dict[str, str]]:
    """Checks, in a process of its own, that an interpreter can run a worker.

    Returns:
        The path of its executable as it says itself, and its versions by distribution.

    Raises:
        EnvironmentFailed: It cannot be started, is too old, or lacks or cannot import what a worker
            needs; the message says what to install.
    """
    found = _probe(interpreter)
    executable, versions = shlex.quote(interpreter.executable), found["versions"]
    if tuple(found["python"]) < OLDEST_PYTHON:
        here, oldest = (".".join(map(str, version)) for version in (found["python"], OLDEST_PYTHON))
        raise EnvironmentFailed(f"{executable} is Python {here}; a worker needs {oldest} or later")
    from packaging.requirements import Requirement

    unmet = []
    for text in WORKER_REQUIREMENTS:
        wanted = Requirement(text)
        version = versions.get(wanted.name)
        if version is None or not wanted.specifier.contains(version, prereleases=True):
            unmet.append(text)
    if unmet:
        raise EnvironmentFailed(
            f"{executable} lacks what a worker needs; install it: {executable} -m pip install "
            f"{' '.join(map(shlex.quote, unmet))}"
        )
    orbax = versions["orbax-checkpoint"]
    refuse_release(orbax)
    for module, reason in {**found["missing"], **found["broken"]}.items():
        hint = works_with(orbax) if WORKER_MODULES[module] == "orbax-checkpoint" else ""
        here = ", ".join(f"{name} {version}" for name, version in versions.items())
        raise EnvironmentFailed(
            "; ".join(
                filter(None, [f"{executable} ({here}) cannot import {module}: {reason}", hint])
            )
        )
    return found["executable"], dict(versions)


def _probe(interpreter: Interpreter) -> Any:
    executable = interpreter.executable
    process = None
    try:
        process = subprocess.Popen(
            [executable, "-c", _PROBE.read_text(), json.dumps(WORKER_MODULES)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=interpreter.environment(os.environ),
            start_new_session=True,  # so that what it started ends with it
        )
        code, said = _answer(process)
    except OSError as error:
        raise EnvironmentFailed(f"{executable} does not run: {error}") from None
    except ValueError as error:
        raise EnvironmentFailed(
            f"{executable} does not answer as a Python does: {error}; give the path of a Python"
        ) from None
    finally:
        if process is not None:
            _end(process)
    lines = said.splitlines()
    try:
        found = json.loads(next(line for line in reversed(lines) if line.startswith("{")))
        return {name: found[name] for name in _ANSWERS}
    except (StopIteration, KeyError, TypeError, ValueError, RecursionError):
        last = shortened("".join(lines[-1:])) if code else ""
        raise EnvironmentFailed(
            f"{executable} ended with code {code} when it was asked what it has: "
            f"{last or 'it did not answer as a Python does'}",
            said,
        ) from None


def _answer(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Returns the exit code and the output of a program that may be no Python.

    Both are bounded, in size and in time: it could print or sleep for ever.
    """
    assert process.stdout is not None
    began, said = time.monotonic(), bytearray()
    while True:
        limit = _PROBE_S if said else _FIRST_S
        left = began + limit - time.monotonic()
        if not select.select([process.stdout], [], [], max(0.0, left))[0]:
            raise ValueError(f"it {'does not end' if said else 'says nothing'} within {limit:g} s")
        data = os.read(process.stdout.fileno(), _MOST_BYTES)
        said += data
        if len(said) > _MOST_BYTES:
            raise ValueError(f"it says more than {_MOST_BYTES:,} bytes")
        if not data:
            break
    try:
        code = process.wait(max(0.1, began + _PROBE_S - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise ValueError(f"it does not end within {_PROBE_S:g} s") from None
    return code, said.decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
