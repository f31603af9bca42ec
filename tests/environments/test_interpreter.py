import json
import os
import sys

import pytest

from orbax_bench_core.environments import EnvironmentFailed, Interpreter, interpreter
from orbax_bench_core.environments.interpreter import check, find_executable, worker_variables
from orbax_bench_core.environments.supported import WORKER_MODULES

HAVE = {
    "numpy": "2.0",
    "psutil": "7.0",
    "pydantic": "2.14.3",
    "pyyaml": "6.0",
    "etils": "1.15",
    "jax": "0.9.0",
    "orbax-checkpoint": "0.11.32",
}


@pytest.fixture
def answering(script):
    """Makes an interpreter that says what it has."""

    def answering(*, python=(3, 11), missing=None, broken=None, versions=()):
        answer = {
            "python": python,
            "executable": "python",
            "missing": missing or {},
            "broken": broken or {},
            "versions": {name: one for name, one in {**HAVE, **dict(versions)}.items() if one},
        }
        return Interpreter(str(script(f"cat <<'END'\nnoise\n{json.dumps(answer)}\nEND")), {})

    return answering


def test_a_name_is_looked_for_on_path(monkeypatch, script, tmp_path):
    script("true", name="python-of-ours")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_executable("python-of-ours", tmp_path / "x") == tmp_path / "python-of-ours"


def test_a_path_is_relative_to_the_suite_and_a_link_stays_as_it_is(script, tmp_path):
    path = script("true")
    assert find_executable("./python", tmp_path) == path
    (tmp_path / "link").symlink_to(path)
    assert find_executable("./link", tmp_path).name == "link"


def test_a_virtual_environment_has_its_python(tmp_path, script):
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    script("true", name="venv/bin/python")
    assert find_executable("./venv", tmp_path) == tmp_path / "venv" / "bin" / "python"


@pytest.mark.parametrize("given", ["./none", "./folder", "./text"])
def test_something_that_does_not_run_is_refused(tmp_path, given):
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("text")
    with pytest.raises(EnvironmentFailed, match="is not a program; give the path of a Python"):
        find_executable(given, tmp_path)


def test_what_is_on_the_path_comes_after_the_worker(tmp_path):
    interpreter = Interpreter("python", worker_variables(tmp_path / "cache", None))
    found = interpreter.environment({"PYTHONPATH": f"/suite{os.pathsep}/b"})
    places = found["PYTHONPATH"].split(os.pathsep)
    assert places[0].startswith(str(tmp_path / "cache" / "source-"))
    assert places[1:] == ["/suite", "/b"]


@pytest.mark.parametrize("library", ["jax", "orbax/checkpoint"])
def test_a_library_beside_the_suite_would_hide_the_environments(tmp_path, monkeypatch, library):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / library).mkdir(parents=True)
    with pytest.raises(EnvironmentFailed, match=f"{tmp_path}/{library} would be imported instead"):
        worker_variables(tmp_path / "cache", tmp_path)


def test_versions_are_returned(answering):
    assert check(answering()) == ("python", HAVE)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"python": (3, 9)}, r"is Python 3\.9; a worker needs 3\.11 or later"),
        (
            {"versions": {"orbax-checkpoint": "0.6.0"}},
            r"orbax-checkpoint 0\.6\.0 has no v1 API",
        ),
    ],
)
def test_what_is_too_old_is_refused(answering, given, said):
    with pytest.raises(EnvironmentFailed, match=said):
        check(answering(**given))


def test_what_is_missing_can_be_pasted(answering):
    lacking = answering(versions={"psutil": "", "pydantic": "2.5"})
    with pytest.raises(EnvironmentFailed) as failure:
        check(lacking)
    command = f"{lacking.executable} -m pip install psutil 'pydantic>=2.12'"
    assert str(failure.value).endswith(f"install it: {command}")


def test_a_jax_that_orbax_breaks_with_is_explained(answering):
    broken = answering(
        broken={"orbax.checkpoint": "AttributeError: no DeviceLocalLayout"},
        versions={"orbax-checkpoint": "0.11.13"},
    )
    with pytest.raises(EnvironmentFailed) as failure:
        check(broken)
    assert "no DeviceLocalLayout" in str(failure.value)
    assert "jax 0.9.0" in str(failure.value)
    assert str(failure.value).endswith("; orbax-checkpoint 0.11.13 needs jax<0.7")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("exec sleep 600", "it says nothing within 0.1 s"),
        ("echo; exec sleep 600", "it does not end within 0.2 s"),
        ("exec yes", "it says more than 1,048,576 bytes"),
        ("exec cat", "it did not answer as a Python does"),
        ("echo []", "it did not answer as a Python does"),
        ("echo '{\"versions\": 1}'", "it did not answer as a Python does"),
    ],
)
def test_what_does_not_answer_as_a_python_is_not_waited_for(script, monkeypatch, body, said):
    monkeypatch.setattr(interpreter, "_PROBE_S", 0.2)
    monkeypatch.setattr(interpreter, "_FIRST_S", 0.1)
    with pytest.raises(EnvironmentFailed) as failure:
        check(Interpreter(str(script(body)), {}))
    assert said in str(failure.value)


@pytest.mark.slow
def test_this_interpreter_can_run_a_worker(tmp_path):
    _, versions = check(Interpreter(sys.executable, worker_variables(tmp_path, tmp_path)))
    assert versions.keys() >= set(WORKER_MODULES.values()) - {"orbax-bench"}


@pytest.mark.slow
def test_a_worker_takes_nothing_from_where_a_run_is_started(tmp_path, monkeypatch):
    (tmp_path / "psutil.py").write_text("raise RuntimeError('the wrong one')")
    monkeypatch.chdir(tmp_path)
    check(Interpreter(sys.executable, worker_variables(tmp_path / "cache", tmp_path / "suite")))
