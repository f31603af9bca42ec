import shlex
import subprocess
import sys

import pytest

pytest.importorskip("kfp")

from orbax_bench_pipelines.local import shell_safe_python


def test_an_interpreter_below_a_folder_with_a_space_can_be_called(tmp_path, monkeypatch):
    folder = tmp_path / "with a space"
    folder.mkdir()
    real = folder / "python"
    real.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    real.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(real))
    with shell_safe_python(tmp_path):
        command = f"{sys.executable} -c 'print(40 + 2)'"
        assert subprocess.check_output(command, shell=True, text=True) == "42\n"
    assert sys.executable == str(real)


def test_any_other_interpreter_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    with shell_safe_python(tmp_path):
        assert sys.executable == "/usr/bin/python3"
    assert not (tmp_path / "python").exists()
