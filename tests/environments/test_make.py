import os
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from orbax_bench_core.environments import EnvironmentFailed, Interpreter, make
from orbax_bench_core.environments.make import installable, key, read_requirement

SPARE = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "spare"
version = "1.0"
"""
BACKEND = """
import zipfile

def build_wheel(directory, settings=None, metadata=None):
    name, info = 'spare-1.0-py3-none-any.whl', 'spare-1.0.dist-info/'
    with zipfile.ZipFile(directory + '/' + name, 'w') as wheel:
        wheel.write('spare.py')
        wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: spare\\nVersion: 1.0\\n')
        wheel.writestr(
            info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'
        )
        wheel.writestr(info + 'RECORD', '')
    return name
"""


def test_without_uv_there_is_no_environment(monkeypatch, make):
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", "")
    (found,), _ = make({"requirements": ["jax"]})
    assert isinstance(found, EnvironmentFailed)
    assert "pip install uv" in str(found)


def test_a_cache_that_cannot_be_written_is_said(tmp_path, make):
    (tmp_path / "file").write_text("")
    (found,), _ = make({"requirements": ["jax"]}, cache=tmp_path / "file" / "cache")
    assert isinstance(found, EnvironmentFailed)
    assert str(found).startswith(f"cannot be made in {tmp_path}/file/cache")


def test_one_that_fails_does_not_stop_the_others(make, script):
    script("exit 1", name="broken")
    (missing, broken), _ = make({"interpreter": "./none"}, {"interpreter": "./broken"})
    assert "none is not a program" in str(missing)
    assert "ended with code 1" in str(broken)


@pytest.mark.slow
def test_a_failure_to_resolve_has_uvs_message(make):
    (found,), _ = make({"requirements": ["orbax-checkpoint==99"]})
    assert isinstance(found, EnvironmentFailed)
    assert "there is no version of orbax-checkpoint==99" in str(found)


@pytest.mark.slow
def test_a_jax_that_breaks_is_refused_before_anything_is_installed(make, tmp_path):
    (found,), _ = make({"requirements": ["orbax-checkpoint==0.11.13", "jax==0.9.0"]})
    assert str(found).endswith("orbax-checkpoint 0.11.13 needs jax<0.7")
    assert not list((tmp_path / "cache").glob("*/venv"))


@pytest.mark.slow
def test_an_interpreter_that_is_there_is_used(make):
    (found,), said = make({"interpreter": sys.executable})
    assert isinstance(found, Interpreter)
    assert (found.executable, said) == (sys.executable, [])


@pytest.mark.nightly
def test_a_virtual_environment_is_made_once(make, spare):
    ours = {"requirements": ["orbax-checkpoint==0.11.32", "./spare"]}
    (found,), said = make(ours)
    assert isinstance(found, Interpreter), found
    assert said[0] == "environment e0: making it"
    assert said[1].endswith(f"orbax-checkpoint 0.11.32, jax {version('jax')}"), "JAX is as here"
    assert _run(found, "import spare; print(spare.VALUE)") == "1"
    assert _run(found, "import importlib.util as u; print(u.find_spec('pytest'))") == "None"

    assert make(ours) == ([found], []), "it is found again"

    home = Path(found.executable).parents[2]
    (home / "ready.json").unlink()
    (home / "venv" / "left").write_text("")
    assert make(ours)[0] == [found]
    assert not (home / "venv" / "left").exists(), "one that was not finished is made again"


@pytest.mark.slow
def test_a_wheel_has_the_sources_of_now(tmp_path, spare):
    found = []
    for value in (1, 2):
        (spare / "spare.py").write_text(f"VALUE = {value}\n")
        wheel = installable(tmp_path, read_requirement("./spare", tmp_path), tmp_path)
        with zipfile.ZipFile(wheel) as archive:
            found.append(archive.read("spare.py").decode())
    assert found == ["VALUE = 1\n", "VALUE = 2\n"]


def test_other_content_is_another_environment(tmp_path, spare):
    first = key([read_requirement("./spare", tmp_path)])
    assert key([read_requirement("./spare", tmp_path)]) == first
    (spare / "spare.py").write_text("VALUE = 2\n")
    assert key([read_requirement("./spare", tmp_path)]) != first


def test_other_versions_here_make_another_environment(monkeypatch):
    first = key([])
    monkeypatch.setattr(make, "own_versions", lambda: ("jax==0.1",))
    assert key([]) != first


@pytest.fixture
def spare(tmp_path):
    """A project whose wheel is made without anything from an index."""
    folder = tmp_path / "spare"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(SPARE)
    (folder / "backend.py").write_text(BACKEND)
    (folder / "spare.py").write_text("VALUE = 1\n")
    return folder


def _run(interpreter, code):
    environment = interpreter.environment(os.environ)
    return subprocess.check_output(
        [interpreter.executable, "-c", code], env=environment, text=True
    ).strip()
