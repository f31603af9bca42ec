"""What hosts in containers are given: the suite in the run directory."""

import dataclasses
from pathlib import Path

import pytest

from orbax_bench_core.config import UserError
from orbax_bench_core.launchers import Launch
from orbax_bench_core.launchers.containers import ship_suite, shipped_suite, with_shipped_suite

SUITE = """suite_name: tiny
checkpoint_config: {spec: {a: {dtype: float32, shape: [8, 2]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


@pytest.fixture
def launch(tmp_path):
    file = tmp_path / "my suite.yaml"
    file.write_text(SUITE)
    run = str(tmp_path / "run")
    command = ("orbax-bench", "run", str(file), "-o", run)
    return Launch(name="a", command=command, output_directory=run, suite=str(file))


def test_hosts_read_the_suite_that_was_put_into_the_run_directory(launch, tmp_path):
    ship_suite(launch)
    there = f"{tmp_path}/run/launch/my suite.yaml"
    assert Path(there).read_text() == SUITE
    assert with_shipped_suite(launch).command[2] == there


def test_a_suite_that_hosts_can_reach_stays_where_it_is(launch):
    there = dataclasses.replace(launch, suite="gs://b/a.yaml")
    assert shipped_suite(there) == "gs://b/a.yaml"


def test_a_command_without_a_suite_ships_nothing(launch, tmp_path):
    ship_suite(dataclasses.replace(launch, suite=""))
    assert not (tmp_path / "run").exists()


def test_a_run_directory_that_cannot_be_written_is_one_message(launch, tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(UserError, match="cannot put the suite into"):
        ship_suite(launch)
