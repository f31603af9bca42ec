"""The package as users get it: the wheel and all that it needs, in an environment of its own."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.blocks import ROOT
from tests.support.installed import Installed


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
    yield Installed(folder / "env", wheel, time.monotonic() - began)
    shutil.rmtree(folder / "env")


@pytest.fixture
def folder(tmp_path):
    """An empty folder to work in, outside of the checkout."""
    found = tmp_path / "work"
    found.mkdir()
    return Path(found)
