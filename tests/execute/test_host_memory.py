"""What the process of a point was made with, as that process shows it."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from orbax_bench_core.sweep import allocator_settings, host_memory_of, placement

from .conftest import ready


@pytest.mark.parametrize("word", ["reused", "fresh", "default"])
@pytest.mark.parametrize("given", ["", "glibc.malloc.trim_threshold=1"])
def test_the_setting_wins_over_what_the_command_was_started_with(word, given):
    environment = {"GLIBC_TUNABLES": given, **allocator_settings(word, given)}
    assert host_memory_of(environment) == word
    assert environment["GLIBC_TUNABLES"].startswith(given)


def test_a_worker_that_is_not_as_asked_names_both(make_point):
    found = ready(fixed=False, host_memory="fresh", interpreter="/p", interpreter_asked="/p")
    asked = placement(make_point())
    assert found.differences(asked) == (
        "the point needs host_memory=reused, and its worker has host_memory=fresh"
    )
    assert found.differences(asked._replace(host_memory="fresh")) == ""
    assert "num_devices=8" in found.differences(asked._replace(num_devices=8))
    fresh = asked._replace(host_memory="fresh", environment="new")
    assert found.differences(fresh) == (
        "the point needs environment=new, and its worker has environment=that of the command"
    )


OTHERWISE = """
suite_name: otherwise
execution: {{retries: 0, warmups: 0, host_memory: fresh}}
environments: [{{name: mine, interpreter: {interpreter}}}]
checkpoint_config: {{spec: {{w: {{dtype: float32, shape: [8]}}}}}}
benchmarks: [{{generator: save_restore, options: {{}}}}]
"""


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["interpreter", "host_memory"])
def test_a_process_that_is_not_as_asked_fails_the_point_and_names_both(wrong, suite_run, tmp_path):
    """The Python of the environment answers as one, and starts workers as another."""
    venv.create(tmp_path / "other", with_pip=False, symlinks=True)
    other = tmp_path / "other" / "bin" / "python"
    libraries = sysconfig.get_paths()["purelib"]
    starts, message = {
        "interpreter": (
            f'export PYTHONPATH="$PYTHONPATH:{libraries}"; exec "{other}"',
            f"needs interpreter={sys.executable}, and its worker has interpreter={other}",
        ),
        "host_memory": (
            f'unset GLIBC_TUNABLES; exec "{sys.executable}"',
            "needs host_memory=fresh, and its worker has host_memory=default",
        ),
    }[wrong]
    script = tmp_path / "python"
    script.write_text(
        f"""#!/bin/sh
case "$*" in *--setup*) {starts} "$@";; esac
exec "{sys.executable}" "$@"
"""
    )
    script.chmod(0o755)
    run = suite_run(OTHERWISE.format(interpreter=script))
    code, output = run.run()
    assert code == 1, output
    (record,) = run.records().values()
    assert record["error"]["type"] == "OtherProcess"
    assert message in record["error"]["message"]


@pytest.mark.slow
def test_a_python_is_the_same_file_however_its_path_is_written(tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(OTHERWISE.replace("environments", "#").format(interpreter=""))
    folder = Path(sys.executable).parent
    done = subprocess.run(
        [
            *(f"../{folder.name}/{Path(sys.executable).name}", "-P", "-m", "orbax_bench_core.cli"),
            *("run", suite, "-o", tmp_path / "run", "--no-limits", "--no-lock"),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
