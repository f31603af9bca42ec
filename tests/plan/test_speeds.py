"""Lower bounds of time, from what a run measured of its storage."""

import datetime

import pytest
from typer.testing import CliRunner

from orbax_bench_core.cli.main import app
from orbax_bench_core.limits import Limits, write
from orbax_bench_core.plan import StorageOptions, plan_checkpoint, speeds_of_run
from orbax_bench_core.records import RunDirectory

SPEC = {"w": {"dtype": "float32", "shape": [1024, 1024], "sharding": ["x"]}}


@pytest.fixture
def run(tmp_path):
    """Returns a run whose storage writes 2 GiB/s and reads 4 GiB/s."""
    probes = [
        {"name": name, "num_bytes": 2**30, "seconds": (seconds,)}
        for name, seconds in (("write_fsync", 0.5), ("read_cold", 0.25))
    ]
    surroundings = {
        "host_memory": "default",
        "load_average": 0.1,
        "available_memory_bytes": 1,
        "free_disk_bytes": 1,
        "page_bytes": 4096,
    }
    limits = Limits.model_validate(
        {
            "path": "/store",
            "requested_bytes": 2**30,
            "num_bytes": 2**30,
            "num_threads": 1,
            "dtype": "float32",
            "taken_at": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
            "duration_s": 1.0,
            "surroundings": surroundings,
            "probes": probes,
        }
    )
    directory = RunDirectory(str(tmp_path))
    write(directory, limits)
    return str(tmp_path)


def test_times_are_bytes_of_the_slowest_host_at_the_speed_of_the_run(run):
    speeds = speeds_of_run(run)
    assert (speeds.write, speeds.read) == (2, 4)
    bare = StorageOptions(use_compression=False)
    places = {"mesh": "x=4", "devices_per_host": 2, "speeds": speeds}
    time = plan_checkpoint(SPEC, options=bare, **places).time
    assert time.save_s == pytest.approx(2 * 2**20 / 2**31)
    assert time.load_s == pytest.approx(2 * 2**20 / 2**32)


def test_each_speed_says_whether_it_was_given_or_measured(run):
    def call(*more):
        words = ["plan", "gpt2@0.1", "--no-compression", "--run", run, *more]
        return CliRunner().invoke(app, words, env={"COLUMNS": "300"}).stdout

    said = call("--write-speed", "3")
    save, load = (line for line in said.splitlines() if "time of a" in line)
    assert save.endswith(" at 3 GiB/s per host (given)")
    assert f" at 4 GiB/s per host (measured in {run}" in load
    said = call("--read-speed", "3")
    save, load = (line for line in said.splitlines() if "time of a" in line)
    assert f" at 2 GiB/s per host (measured in {run}" in save
    assert load.endswith(" at 3 GiB/s per host (given)")


def test_the_source_of_a_speed_can_be_read_again(run):
    source = speeds_of_run(run).write_source
    assert speeds_of_run(source.removeprefix("measured in ")) == speeds_of_run(run)


def test_with_compression_the_ratio_decides(run):
    speeds = speeds_of_run(run)
    assert plan_checkpoint(SPEC, speeds=speeds).time.save_s is None
    half = StorageOptions(compression_ratio=0.5)
    time = plan_checkpoint(SPEC, options=half, speeds=speeds).time
    assert time.save_s == pytest.approx(2 * 2**20 / 2**31)
