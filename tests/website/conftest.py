"""The package as users get it: a wheel in an environment of its own, without the checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.blocks import ROOT

_PATHS = ("XLA_FLAGS", "JAX_ENABLE_X64", "JAX_PLATFORMS", "PYTHONPATH", "VIRTUAL_ENV")


class Installed:
    """An environment with our wheel, and with the other packages that the tests have."""

    def __init__(self, folder):
        self.bin = folder / "bin"

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
    """Builds sdist and wheel, and installs the wheel; nothing of ours comes from the checkout."""
    folder = tmp_path_factory.mktemp("installed")
    uv = [sys.executable, "-m", "uv", "--quiet"]
    subprocess.run([*uv, "build", "--out-dir", folder / "dist", ROOT], check=True)
    subprocess.run([*uv, "venv", "--python", sys.executable, folder / "env"], check=True)
    found = Installed(folder / "env")
    python = found.bin / "python"
    (wheel,) = (folder / "dist").glob("*.whl")
    subprocess.run(
        [*uv, "pip", "install", "--python", python, "--no-deps", "--offline", wheel], check=True
    )
    # A folder on the path, whose .pth files are not read: the checkout stays out.
    (site,) = (folder / "env").glob("lib/python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    yield found
    shutil.rmtree(folder / "env")


@pytest.fixture
def folder(tmp_path):
    """An empty folder to work in, outside of the checkout."""
    found = tmp_path / "work"
    found.mkdir()
    return Path(found)
