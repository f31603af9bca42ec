"""Killing anything at any moment loses nothing that has finished."""

import os
import signal

import psutil
import pytest

from tests.golden.support import orbax_bench
from tests.support.fake_cli import fake_bench
from tests.support.processes import FAKE_CLI, REAL_CLI, wait_until

pytestmark = pytest.mark.slow

SUITE = """
suite_name: resume
num_repeats: 10
execution: {retries: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [1024, 4096], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 4}}
benchmarks:
  - {generator: save_restore, options: {use_ocdbt: [true, false]}}
"""
SCRIPTED = """
suite_name: resume
num_repeats: 3
execution: {retries: 0, warmups: 0, rounds_per_process: 3}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks:
  - {generator: tests.support.scripted.Scripted, options: {lasts_s: 0.25, save_s: [0.1, 0.2]}}
"""
REPEATS = {SUITE: 20, SCRIPTED: 6}


def planned(run):
    return REPEATS[run.suite_file.read_text()]


def finished(run):
    return len(list(run.directory.glob("records/*/repeat_*/host_0.json")))


def mid_save(run):
    """Whether a measured save after the first finished repeat is under way."""
    unfinished = list(run.directory.glob("*/repeat_*/ckpt.orbax-checkpoint-tmp*"))
    return finished(run) >= 1 and bool(unfinished)


def mid_repeat(run):
    """Whether a repeat of the fake worker after the first finished one is under way."""
    return finished(run) >= 1 and any(
        not (
            run.directory / "records" / folder.parent.name.rpartition("_")[2] / folder.name
        ).exists()
        for folder in run.directory.glob("Scripted_*/repeat_*")
    )


def worker_of(process):
    [worker] = psutil.Process(process.pid).children()
    return worker


def complete_and_identical(run, before, cli=REAL_CLI):
    code, output = run.run(bench=fake_bench if cli == FAKE_CLI else orbax_bench)
    after = run.record_bytes()
    assert code == 0, output
    assert finished(run) == planned(run)
    assert {name: after[name] for name in before} == before
    assert '"status": "complete"' in (run.directory / "run.json").read_text()


def passed_records(run):
    return {name: data for name, data in run.record_bytes().items() if b'"passed"' in data}


@pytest.mark.nightly
def test_defect_15_after_a_worker_is_killed_mid_save(suite_run):
    run = suite_run(SUITE)
    process = run.start()
    wait_until(lambda: mid_save(run))
    worker_of(process).send_signal(signal.SIGKILL)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1, output
    statuses = [record["status"] for record in run.records().values()]
    assert sorted(statuses) == ["failed"] + ["passed"] * (planned(run) - 1)
    complete_and_identical(run, passed_records(run))


def test_after_the_orchestrator_is_killed(suite_run):
    run = suite_run(SCRIPTED)
    process = run.start(cli=FAKE_CLI)
    wait_until(lambda: mid_repeat(run))
    worker = worker_of(process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    # A worker without an orchestrator ends by itself, and does not go on measuring.
    wait_until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)
    before = passed_records(run)
    assert 1 <= len(before) < planned(run)
    complete_and_identical(run, before, FAKE_CLI)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("suite", "cli", "signal_"),
    [
        pytest.param(SUITE, REAL_CLI, signal.SIGINT, id="SIGINT"),
        pytest.param(SCRIPTED, FAKE_CLI, signal.SIGTERM, id="SIGTERM"),
        pytest.param(SCRIPTED, FAKE_CLI, signal.SIGHUP, id="SIGHUP"),
    ],
)
def test_an_interrupted_run_says_how_to_go_on(suite_run, suite, cli, signal_):
    run = suite_run(suite)
    process = run.start(cli=cli)
    wait_until(lambda: finished(run) >= 1)
    worker = worker_of(process)
    process.send_signal(signal_)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Run the same command again" in output
    assert "Traceback" not in output
    assert not worker.is_running()
    complete_and_identical(run, passed_records(run), cli)


def test_a_run_whose_shell_ignores_interrupts_goes_on(suite_run):
    run = suite_run(SCRIPTED)
    process = run.start(cli=FAKE_CLI, ignores_interrupts=True)
    wait_until(lambda: finished(run) >= 1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert finished(run) == planned(run)
