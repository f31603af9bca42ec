"""Makes the environments of a suite."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from orbax_bench_core.config.environment import EnvironmentConfig
from orbax_bench_core.environments.cache import cache_folder, only_process
from orbax_bench_core.environments.contents import installable, key
from orbax_bench_core.environments.failure import EnvironmentFailed
from orbax_bench_core.environments.interpreter import (
    Interpreter,
    check,
    find_executable,
    worker_variables,
)
from orbax_bench_core.environments.requirements import Requirement, read_requirement
from orbax_bench_core.environments.resolve import LOCK, resolve
from orbax_bench_core.environments.uv import run_uv

_AT_ONCE = 4
_READY = "ready.json"


def make_environments(
    configs: Sequence[EnvironmentConfig],
    *,
    folder: Path,
    say: Callable[[str], None],
    cache: Path | None = None,
) -> dict[str, Interpreter | EnvironmentFailed]:
    """Makes the environments of a suite, several at once, or finds those that were made before.

    Args:
        configs: The environments.
        folder: The suite's folder: relative paths are relative to it.
        say: Called with a line for people when something takes a while.
        cache: Where environments are kept; `cache_folder()` by default.

    Returns:
        By name: the Python that runs the worker, or why there is none.
    """
    if not configs:
        return {}
    maker = _Maker(folder.absolute(), cache or cache_folder(), say)
    with ThreadPoolExecutor(min(len(configs), _AT_ONCE), "environment") as threads:
        return dict(
            zip([config.name for config in configs], threads.map(maker.make, configs), strict=True)
        )


@dataclasses.dataclass(frozen=True)
class _Maker:
    folder: Path
    cache: Path
    tell: Callable[[str], None]
    _telling: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def make(self, config: EnvironmentConfig) -> Interpreter | EnvironmentFailed:
        try:
            if config.interpreter is not None:
                return self._existing(config.interpreter)
            return self._made(config)
        except EnvironmentFailed as failure:
            return failure
        except OSError as error:
            return EnvironmentFailed(f"cannot be made in {self.cache}: {error}")

    def _existing(self, given: str) -> Interpreter:
        executable = find_executable(given, self.folder)
        interpreter = Interpreter(str(executable), worker_variables(self.cache, self.folder))
        check(interpreter)
        return interpreter

    def _made(self, config: EnvironmentConfig) -> Interpreter:
        requirements = [read_requirement(text, self.folder) for text in config.requirements]
        home = self.cache / key(requirements)
        interpreter = Interpreter(
            str(home / "venv" / "bin" / "python"), worker_variables(self.cache, self.folder)
        )
        with only_process(home, lambda: self._say(config, "waiting for another process's")):
            if not _is_ready(home, interpreter):
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
        resolve(home, [installable(home, one, self.folder) for one in requirements], self.folder)
        run_uv("venv", "--python", sys.executable, str(home / "venv"), folder=self.folder)
        run_uv(
            *("pip", "install", "--no-deps", "--requirements", str(home / LOCK)),
            *("--python", interpreter.executable),
            folder=self.folder,
        )
        versions = check(interpreter)
        unfinished = home / f"{_READY}.tmp"
        unfinished.write_text(json.dumps({"versions": versions}, indent=1))
        unfinished.replace(home / _READY)
        return versions

    def _say(self, config: EnvironmentConfig, what: str) -> None:
        with self._telling:
            self.tell(f"environment {config.name}: {what}")


_NAMED = ("orbax-checkpoint", "jax")


def _is_ready(home: Path, interpreter: Interpreter) -> bool:
    # The link to the Python that it was made with may have lost its target since.
    return (home / _READY).exists() and Path(interpreter.executable).exists()
