"""The package as users get it: the wheel and all that it needs, in an environment of its own."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.blocks import ROOT

_PATHS = ("XLA_FLAGS", "JAX_ENABLE_X64", "JAX_PLATFORMS", "PYTHONPATH", "VIRTUAL_ENV")


class Installed:
    """An environment with our wheel, and with the packages that it names; none of the tests'.

    Attributes:
        bin: Where its commands are.
        took_s: How long the installation took, the building of the wheel left out.
    """

    def __init__(self, folder, took_s):
        self.bin, self.took_s = folder / "bin", took_s

    def run(self, command, folder, **variables):
        """Runs a shell command where only this environment is; returns what `subprocess` does."""
        plain = {name: text for name, text in os.environ.items() if name not in _PATHS}
        path = f"{self.bin}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env={**plain, "PATH": path, "COLUMNS": "160", **variables},
            capture_output=True,
            text=True,
            timeout=550,
            check=False,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Builds sdist and wheel, and installs the wheel as the tutorials say: `orbax-bench[flax]`.

    Packages come from the index or the cache of whoever runs this.
    """
    folder = tmp_path_factory.mktemp("installed")
    uv = [sys.executable, "-m", "uv", "--quiet"]
    subprocess.run([*uv, "build", "--out-dir", folder / "dist", ROOT], check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    began = time.monotonic()
    subprocess.run([*uv, "venv", "--python", sys.executable, folder / "env"], check=True)
    into = [*uv, "pip", "install", "--python", folder / "env" / "bin" / "python"]
    subprocess.run([*into, f"{wheel}[flax]"], check=True)
    yield Installed(folder / "env", time.monotonic() - began)
    shutil.rmtree(folder / "env")


@pytest.fixture
def folder(tmp_path):
    """An empty folder to work in, outside of the checkout."""
    found = tmp_path / "work"
    found.mkdir()
    return Path(found)
