"""Recovery drills and soaks with the real worker, by the commands of their pages."""

import json
import os
import re
import shlex
from pathlib import Path

import pytest

from perf.process import SIMULATED
from tests.support.processes import run_cli

ROOT = Path(__file__).parents[2]
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

pytestmark = pytest.mark.nightly


def series_of(*words):
    plain = {name: value for name, value in os.environ.items() if name not in SIMULATED}
    done = run_cli(*words, "--json", environment=plain, folder=ROOT)
    found = json.loads(done.stdout or "{}")
    # How much memory a save keeps is measured: a load next to it may move the growth.
    expected = {"LEAK": 3, "INCONCLUSIVE": 4}.get(found.get("word"), 0)
    assert done.returncode == expected, done.stdout + done.stderr
    return found["series"]


def series_of_page(name, folder):
    """Runs the commands of a page; returns the series of the last one."""
    (block,) = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / name).read_text(), re.DOTALL)
    for line in block.splitlines():
        words = shlex.split(line.replace("/tmp/", f"{folder}/"), comments=True)
        found = series_of(*words[1:])
    return found


def test_the_commands_on_recovery(tmp_path):
    found = series_of_page("recovery.md", tmp_path)
    assert len(found) == 2
    for series in found:
        assert (series["recovered"], series["verified"]) == (2, True)
        total = {phase["phase"]: phase["added"] for phase in series["phases"]}["recovery"]
        assert total == 210


@pytest.mark.extended
def test_a_job_comes_back_from_local_disks_of_both_managers_and_from_one_that_was_wiped(tmp_path):
    suite = tmp_path / "tiers.yaml"
    suite.write_text(TIERS)
    found = series_of("recovery", suite, "-o", tmp_path / "run")
    assert [(series["recovered"], series["verified"]) for series in found] == [(1, True)] * 3


def test_the_commands_on_soaks(tmp_path):
    (series,) = series_of_page("soak.md", tmp_path)
    found = {growth["level"]: growth for growth in series["growths"]}
    assert {"rss", "open_files", "threads", "time", "files_left"} <= found.keys()
    assert found["rss"]["word"] == series["word"]
    assert found["rss"]["limit"] == 0.06  # that of the last command
    assert series["lives"] == [200]
