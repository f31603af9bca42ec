"""Steps in containers of one machine: namespaces of their own, and storage that they share."""

import datetime
import itertools
import json
import os
import subprocess
import sys
import time

import pytest

from orbax_bench_core.engine import plan_sweep
from orbax_bench_core.records import RunDirectory
from tests.support.processes import FAKE_CLI, ROOT

SUITE = """
suite_name: steps
num_repeats: 1
execution: {warmups: 0, retries: 0}
benchmarks:
- {generator: tests.support.scripted.Scripted, options: {lasts_s: %s, save_s: [0.1, 0.2]}}
checkpoint_config: {spec: {a: {dtype: float32, shape: [8]}}}
"""
NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode != 0,
        reason="namespaces take root",
    ),
]


@pytest.fixture
def pods(tmp_path):
    """Starts steps with processes and a lock file of their own, as in containers; ends them all.

    The files are those of this machine: a checkout may lie anywhere, below /tmp or /mnt too.
    """
    started = []

    def start(run, point, hurry=20):
        step = ("step", "run-sweep-point", point, "-o", tmp_path / run, "--no-limits")
        command = [*NAMESPACES, sys.executable, "-m", FAKE_CLI, *map(str, step)]
        own = {"LEASE_HURRY": str(hurry), "LOCK_FILE": str(tmp_path / f"lock-{len(started)}")}
        environment = {**os.environ, **own}
        piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment, **piped))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def planned(folder, lasts_s):
    plan_sweep(SUITE % lasts_s, str(folder))
    return [point.id for point in RunDirectory(str(folder)).read_info().expansion.points]


def test_steps_of_one_run_and_of_two_in_one_place_measure_one_after_the_other(pods, tmp_path):
    runs = {name: planned(tmp_path / name, 0.5) for name in ("runs/a", "runs/b")}
    measured = [("runs/a", 0), ("runs/b", 0), ("runs/a", 1)]
    steps = [pods(run, runs[run][number], hurry=2) for run, number in measured]
    outs = [step.communicate(timeout=300)[0] for step in steps]
    assert [step.returncode for step in steps] == [0] * 3, outs
    assert any("it measures on this machine; --no-lock" in out for out in outs), outs
    busy = []
    for file in tmp_path.glob("runs/*/records/*/repeat_*/host_*.json"):
        record = json.loads(file.read_text())
        begun = datetime.datetime.fromisoformat(record["started_at"])
        busy.append((begun, begun + datetime.timedelta(seconds=record["duration_s"])))
    assert len(busy) == 3
    busy.sort()
    assert all(ended <= begun for (_, ended), (begun, _) in itertools.pairwise(busy)), busy


def test_a_holder_that_was_killed_in_another_container_frees_the_machine(pods, tmp_path):
    first, second = planned(tmp_path / "run", 60.0)
    holder = pods("run", first)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".orbax-bench/leases/*.json")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    holder.kill()
    holder.wait()
    waiting = pods("run", second)
    line = next(line for line in waiting.stdout if "waiting for process" in line)
    assert "without a sign of life" in line
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".orbax-bench/leases/*.2.json")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
