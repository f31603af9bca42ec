import sys

import pytest

from orbax_bench_core.environments import EnvironmentFailed
from orbax_bench_core.environments.uv import find_uv, run_uv


def test_it_is_found_beside_this_package(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert run_uv("--version", folder=".").startswith("uv ")


def test_it_is_found_on_path(monkeypatch, script):
    path = script("echo", name="uv")
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", str(path.parent))
    assert find_uv() == str(path)


@pytest.fixture
def failing(monkeypatch, script):
    def fail(text):
        path = script(f"cat >&2 <<'END'\n{text}\nEND\nexit 2", name="uv")
        monkeypatch.setitem(sys.modules, "uv", None)
        monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
        with pytest.raises(EnvironmentFailed) as failure:
            run_uv("pip", folder=path.parent)
        return failure.value

    return fail


def test_its_message_is_one_line_and_all_that_it_printed_is_kept(failing):
    failure = failing("error: No solution found:\n  cause: Because there is none.\n\n")
    assert str(failure) == "uv: No solution found: Because there is none"
    assert failing("error: a\n  cause: b").output == "error: a\n  cause: b\n"


def test_the_environment_that_is_active_here_is_left_alone(monkeypatch, script):
    path = script('echo "<$VIRTUAL_ENV>"', name="uv")
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", str(path.parent))
    monkeypatch.setenv("VIRTUAL_ENV", "/ours")
    assert run_uv("pip", folder=path.parent) == "<>\n"
