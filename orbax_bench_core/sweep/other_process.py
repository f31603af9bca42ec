"""Processes for what imports JAX or anyone's module, which stay out of this one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.python_command import python_command

_PACKAGE: Final = Path(__file__).resolve().parents[1]


def benchmark_environment(suite_file: str) -> dict[str, str]:
    """Returns the environment in which a suite's benchmark classes can be imported.

    A class may lie next to `suite_file`, whose folder comes first; the current directory does not
    count. Of a suite that a program made the folder is that of the program.
    """
    places = [os.environ.get("PYTHONPATH", "")]
    folder = suite_folder(suite_file) if suite_file else _program_folder()
    if folder is not None:
        places.insert(0, str(folder))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}


def _program_folder() -> Path | None:
    """Returns where this program has its own modules: next to its script, if it has one."""
    if "" in sys.path:  # an interactive session, or a notebook
        return Path.cwd()
    main = sys.modules["__main__"]
    script = getattr(main, "__file__", None)
    return Path(script).resolve().parent if script and main.__spec__ is None else None


def printed_apart(
    module: str, *arguments: str, environment: Mapping[str, str], within_s: float | None = None
) -> str:
    """Returns the output of a module that uses JAX, which stays out of this process.

    Args:
        module: What `python -m` runs.
        arguments: Its arguments; the last one is what a message names.
        environment: Its variables, to which `JAX_PLATFORMS=cpu` is added.
        within_s: Seconds after which it is ended; None waits for its end.

    Raises:
        UserError: It failed, or took longer than it may.
    """
    try:
        process = subprocess.run(
            python_command("-m", module, *arguments),
            capture_output=True,
            text=True,
            env={**environment, "JAX_PLATFORMS": "cpu"},  # and off the accelerators
            timeout=within_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"{arguments[-1]!r} was not built within {within_s:.0f} s") from None
    if process.returncode:
        raise UserError((process.stderr.strip() or "it ended without a word").splitlines()[-1])
    return process.stdout


def suite_folder(suite_file: str) -> Path | None:
    """Returns the folder in which a suite lies; None for one that has no folder on this machine.

    One of this package has none either: next to it lie modules of ours, which no worker imports by
    their last names.
    """
    if not suite_file or "://" in suite_file:
        return None
    folder = Path(suite_file).resolve().parent
    return None if folder.is_relative_to(_PACKAGE) else folder
