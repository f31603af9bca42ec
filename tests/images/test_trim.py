"""Symbols cut off libraries: what is mapped stays, and what it is for."""

import ctypes
import importlib.util
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"images/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def library(tmp_path):
    """A copy of a library that comes with its symbols."""
    folder = Path(importlib.util.find_spec("yaml").origin).parent
    [found] = folder.glob("_yaml*.so")
    return Path(shutil.copy(found, tmp_path / found.name))


def test_a_library_is_smaller_and_still_loads(library):
    before = library.stat().st_size
    cut = load("trim").trim(library)
    assert cut > 0
    assert library.stat().st_size == before - cut
    assert ctypes.CDLL(str(library)).PyInit__yaml
