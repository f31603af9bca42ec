"""Recovery drills with the real worker."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from perf.process import SIMULATED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "recovery.md").read_text()
TIERS = """
suite_name: tiers
execution: {processes: 2, retries: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [64, 64], sharding: [null, fsdp]}}}
mesh_config:
  mesh_axes: [replica, fsdp]
  ici_parallelism: {fsdp: 2}
  dcn_parallelism: {replica: 2}
benchmarks:
- generator: training_job
  options:
    save_interval_steps: 5
    matrix_size: 16
    tier: [local, replicator]
    wiped: [false, true]
"""


def drill(*words):
    environment = {name: value for name, value in os.environ.items() if name not in SIMULATED}
    done = subprocess.run(
        [sys.executable, "-m", "orbax_bench_core.cli", *words, "--json"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["series"]


@pytest.mark.nightly
def test_the_commands_of_the_page(tmp_path):
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines():
        found = drill(*shlex.split(line.replace("/tmp/", f"{tmp_path}/"), comments=True)[1:])
    assert len(found) == 2
    for series in found:
        assert (series["recovered"], series["verified"]) == (2, True)
        total = {phase["phase"]: phase["added"] for phase in series["phases"]}["recovery"]
        assert total == 210


@pytest.mark.nightly
@pytest.mark.extended
def test_a_job_comes_back_from_local_disks_of_both_managers_and_from_one_that_was_wiped(tmp_path):
    suite = tmp_path / "tiers.yaml"
    suite.write_text(TIERS)
    found = drill("recovery", str(suite), "-o", str(tmp_path / "run"))
    assert [(series["recovered"], series["verified"]) for series in found] == [(1, True)] * 3
