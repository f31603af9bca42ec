"""Components in a container: what went wrong is a message with an exit code, not a traceback."""

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.aggregate import aggregate
from orbax_bench_core.errors import UserError
from tests.support.executor import MOST_S, executed


@pytest.fixture
def run(make_run, make_record):
    return make_run([make_record(times={"save": 0.5})])


def check(ended, *, code=2):
    assert ended.code == code, ended.text
    assert ended.said, ended.text
    assert sum(map(len, ended.said)) < 2_100
    assert "Traceback" not in ended.text
    assert ended.seconds < MOST_S


@pytest.mark.parametrize("name", ["lineage.json", "metrics.json", "report.html", "samples.parquet"])
def test_a_folder_in_the_place_of_a_file_is_a_message(call, run, name):
    (run.root / name).mkdir()
    (run.root / name / "file").touch()
    with pytest.raises(UserError, match=rf"{name}: Is a directory; a folder is in the place"):
        call(aggregate, output_directory=str(run.root))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verdict", "lacking", "code"),
    [("REGRESSION", [], 3), ("INCONCLUSIVE", [], 4), ("PASS", ["a was lost"], 1), ("x", [], 2)],
)
def test_a_verdict_ends_a_container_with_the_code_of_the_command(tmp_path, verdict, lacking, code):
    made = executed("enforce_verdict", tmp_path, verdict=verdict, lacking=lacking)
    check(made, code=code)


@pytest.mark.slow
def test_a_container_whose_step_succeeds_says_nothing(tmp_path):
    ended = executed("enforce_verdict", tmp_path, verdict="PASS")
    assert (ended.code, ended.said) == (0, [])


BODY = """
import signal, sys, time
from orbax_bench_core.files import atomic_file
from orbax_bench_core.engine import ErrorsAsMessages

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests may run under nohup, which hides it
with ErrorsAsMessages(), atomic_file(sys.argv[1]) as first:
    print("begun", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGHUP])
def test_a_step_that_is_told_to_end_leaves_no_temporary_file(tmp_path, told):
    output = tmp_path / "out"
    step = subprocess.Popen(
        [sys.executable, "-c", BODY, str(output)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "_KFP_RUNTIME": "true"},
    )
    assert step.stdout.readline() == "begun\n"
    step.send_signal(told)
    said, _ = step.communicate(timeout=60)
    assert step.returncode == 130, said
    assert f"told to end by {told.name}" in said
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []
