"""A run directory that is renamed while it is measured, and a run that is interrupted."""

import contextlib
import json
import os
import shutil
import signal

import pytest

from orbax_bench_core.interrupts import interrupted_when_told
from tests.support.processes import FAKE_CLI, interrupts, wait_until

pytestmark = pytest.mark.slow

SUITE = """
suite_name: vanished
num_repeats: 20
execution: {retries: 1, warmups: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks:
  - {generator: tests.support.scripted.Scripted, options: {lasts_s: 0.2}}
"""
ARMS = "arms: {candidate: {options: {load_s: 0.03}}}\n"


def wait_for_a_record(run, repeat="*"):
    wait_until(lambda: list(run.directory.glob(f"records/*/repeat_{repeat}/host_0.json")))


@pytest.mark.parametrize("command", ["run", pytest.param("ab", marks=pytest.mark.nightly)])
def test_a_run_directory_that_is_renamed_ends_the_run_at_once(suite_run, command):
    run = suite_run(SUITE + (ARMS if command == "ab" else ""))
    process = run.start(cli=FAKE_CLI, command=command)
    wait_for_a_record(run)
    run.directory.rename(run.directory.with_name("elsewhere"))
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"stopped: the run directory {run.directory} is gone: it was renamed or" in output
    assert "Traceback" not in output
    assert "failed:" not in output
    assert "Run the same command again" not in output
    assert not (run.directory / "run.json").exists()


def test_records_that_are_removed_while_others_are_measured_are_told_of(suite_run):
    run = suite_run(SUITE.replace("20", "5"))
    process = run.start(cli=FAKE_CLI)
    wait_for_a_record(run, repeat=1)
    shutil.rmtree(run.directory / "records")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"measured repeats are gone from {run.directory}, such as records/" in output
    assert "Put that right, then run the same command again to" in output
    assert "verified" not in output
    there = len(list(run.directory.glob("records/*/repeat_*/host_0.json")))
    assert there < 5
    assert f"{there} of 5 repeats are done and kept" in output
    assert json.loads((run.directory / "run.json").read_text())["status"] == "incomplete"


def test_an_interrupt_that_somebody_loses_ends_the_run_before_the_next_repeat(orchestrate):
    """Such as a finalizer: Python prints what it raises, and goes on."""
    run, heard = orchestrate("pass"), []

    class Loses(list):
        def append(self, event):
            heard.append(event)
            if event.repeat is not None:
                with contextlib.suppress(KeyboardInterrupt):
                    os.kill(os.getpid(), signal.SIGINT)

    run.watched = Loses()
    with interrupts(), interrupted_when_told(), pytest.raises(KeyboardInterrupt):
        run.run(repeats=3)
    assert len(run.repeat("pass", 0)) == 1
    assert not run.repeat("pass", 1)
