"""Running uv, which makes virtual environments."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from orbax_bench_core.environments.failure import EnvironmentFailed

_LONGEST = 1000


def run_uv(*arguments: str, folder: Path, text: str = "") -> str:
    """Runs uv and returns what it printed.

    Args:
        *arguments: Command line after `uv`.
        folder: Where it runs: uv reads the settings of projects that it runs in.
        text: Its standard input.

    Raises:
        EnvironmentFailed: uv is not installed, or it failed, with what it said.
    """
    process = subprocess.run(
        [find_uv(), "--quiet", "--no-progress", "--color", "never", *arguments],
        input=text,
        capture_output=True,
        text=True,
        cwd=folder,
        # The environment that is active here is not the one that uv is to change.
        env={name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
        check=False,
    )
    if process.returncode != 0:
        raise EnvironmentFailed(_in_one_line(process.stderr), process.stderr)
    return process.stdout


def find_uv() -> str:
    """Returns the path of uv: that which is installed beside this package, or the one on PATH.

    Raises:
        EnvironmentFailed: There is none.
    """
    try:
        import uv

        return str(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise EnvironmentFailed(
            "uv makes the environments of a suite and is not installed here: pip install uv"
        )
    return found


def _in_one_line(output: str) -> str:
    """Returns what uv printed without its labels and line breaks; long output keeps its ends."""
    lines = [re.sub(r"^(error|cause): ", "", line.strip()) for line in output.splitlines()]
    said = ": ".join(line.rstrip(":.") for line in lines if line)
    if len(said) > _LONGEST:
        said = f"{said[: _LONGEST // 2]} ... {said[-_LONGEST // 2 :]}"
    return f"uv: {said or 'failed without a word'}"
