"""Killing anything at any moment loses nothing that has finished."""

import os
import signal
import time

import psutil
import pytest

pytestmark = pytest.mark.slow

SUITE = """
suite_name: resume
num_repeats: 3
execution: {retries: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [1024, 4096], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 4}}
benchmarks:
  - {generator: save_restore, options: {use_ocdbt: [true, false]}}
"""
REPEATS = 6


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def finished(run):
    return len(list(run.directory.glob("records/*/repeat_*/host_0.json")))


def mid_save(run):
    """Whether a measured save after the first finished repeat is under way."""
    unfinished = list(run.directory.glob("*/repeat_*/ckpt.orbax-checkpoint-tmp*"))
    return finished(run) >= 1 and bool(unfinished)


def worker_of(process):
    [worker] = psutil.Process(process.pid).children()
    return worker


def complete_and_identical(run, before):
    code, output = run.run()
    after = run.record_bytes()
    assert code == 0, output
    assert finished(run) == REPEATS
    assert {name: after[name] for name in before} == before
    assert '"status": "complete"' in (run.directory / "run.json").read_text()


def passed_records(run):
    return {name: data for name, data in run.record_bytes().items() if b'"passed"' in data}


def test_defect_15_after_a_worker_is_killed_mid_save(suite_run):
    run = suite_run(SUITE)
    process = run.start()
    wait_for(lambda: mid_save(run))
    worker_of(process).send_signal(signal.SIGKILL)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1, output
    statuses = [record["status"] for record in run.records().values()]
    assert sorted(statuses) == ["failed"] + ["passed"] * (REPEATS - 1)
    complete_and_identical(run, passed_records(run))


def test_after_the_orchestrator_is_killed(suite_run):
    run = suite_run(SUITE)
    process = run.start()
    wait_for(lambda: mid_save(run))
    worker = worker_of(process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    # A worker without an orchestrator ends by itself, and does not go on measuring.
    wait_for(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)
    before = passed_records(run)
    assert 1 <= len([name for name in before if "repeat_" in name]) < REPEATS
    complete_and_identical(run, before)


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_to_go_on(suite_run, signal_):
    run = suite_run(SUITE)
    process = run.start()
    wait_for(lambda: finished(run) >= 1)
    worker = worker_of(process)
    process.send_signal(signal_)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Run the same command again" in output
    assert "Traceback" not in output
    assert not worker.is_running()
    complete_and_identical(run, passed_records(run))
