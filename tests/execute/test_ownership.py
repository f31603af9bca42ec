"""One command measures a run at a time, and a disk that fails stops it."""

import json
import shutil

import pytest

from tests.execute.conftest import SuiteRun
from tests.support.fake_cli import fake_bench
from tests.support.processes import FAKE_CLI, wait_until

pytestmark = pytest.mark.slow

SUITE = """
suite_name: owned
num_repeats: 3
execution: {retries: 0, warmups: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: tests.support.scripted.Scripted, options: {lasts_s: LASTS}}]
"""


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """A run that is complete."""
    run = SuiteRun(tmp_path_factory.mktemp("complete"), SUITE.replace("LASTS", "0"))
    code, output = run.run(bench=fake_bench)
    assert code == 0, output
    return run.directory


@pytest.fixture
def run(suite_run, complete):
    """A copy of a run that is complete, to be spoilt."""
    run = suite_run(SUITE.replace("LASTS", "0"))
    shutil.copytree(complete, run.directory)
    return run


def test_a_second_command_is_refused_whatever_no_lock_says(suite_run, monkeypatch):
    monkeypatch.setenv("LEASE_HURRY", "10")
    run = suite_run(SUITE.replace("LASTS", "60"))
    first = run.start(cli=FAKE_CLI)
    wait_until(lambda: any(run.directory.glob("*/repeat_*")))
    code, output = run.run(bench=fake_bench)
    assert code == 2, output
    assert f"{run.directory}: this run is being measured by process {first.pid} on " in output
    assert "since 20" in output
    first.terminate()
    output, _ = first.communicate(timeout=60)
    assert first.returncode == 130, output
    assert status(run) == "incomplete"


def status(run):
    return json.loads((run.directory / "run.json").read_text())["status"]


def test_a_record_that_cannot_be_read_is_not_measured_again(run):
    before = run.record_bytes()
    (path,) = run.directory.glob("records/*/repeat_1/host_0.json")
    aside = path.with_name(".aside")
    path.rename(aside)
    path.symlink_to(path)  # reading it gives ELOOP, as a disk gives EIO
    code, output = run.run(bench=fake_bench)
    assert code == 2, output
    assert f"error: {path}: cannot be read" in output
    assert "Traceback" not in output
    assert status(run) == "complete"  # nothing went on
    path.unlink()
    aside.rename(path)
    assert run.run(bench=fake_bench)[0] == 0
    assert run.record_bytes() == before


def test_repeats_in_whose_place_a_copy_or_a_torn_record_lies_are_measured_again(run):
    first, second, third = sorted(run.directory.glob("records/*/repeat_*/host_0.json"))
    second.write_bytes(first.read_bytes())
    third.write_bytes(third.read_bytes()[:100])
    before = first.read_bytes()
    code, output = run.run(bench=fake_bench)
    assert code == 0, output
    assert "left out" not in output
    for index, path in enumerate((second, third), start=1):
        record = json.loads(path.read_text())
        assert (record["repeat"], record["status"]) == (index, "passed")
    assert first.read_bytes() == before
    (aside,) = second.parent.glob(".host_0.json.*")
    assert aside.read_bytes() == first.read_bytes()


@pytest.mark.parametrize("index", [pytest.param(0, marks=pytest.mark.extended), 7])
def test_a_run_with_a_record_of_a_newer_release_is_not_resumed(run, index):
    first, second, _ = sorted(run.directory.glob("records/*/repeat_*/host_0.json"))
    newer = second.parents[1] / f"repeat_{index}" / "host_0.json"
    newer.parent.mkdir(exist_ok=True)
    newer.write_text(first.read_text().replace('"schema_version": 5', '"schema_version": 6'))
    second.unlink()
    before, info = run.record_bytes(), (run.directory / "run.json").read_bytes()
    code, output = run.run(bench=fake_bench)
    assert code == 2, output
    said = (
        "written by a newer orbax-bench (schema 6; this one reads 3, 4 and 5): upgrade orbax-bench"
    )
    assert f"error: {newer}: {said}\n" in output
    assert run.record_bytes() == before
    assert (run.directory / "run.json").read_bytes() == info


def test_a_lease_that_cannot_be_taken_is_a_message(suite_run):
    run = suite_run(SUITE.replace("LASTS", "0"))
    run.directory.mkdir()
    (run.directory / "leases").write_text("in the way")
    code, output = run.run(bench=fake_bench)
    assert code == 2, output
    assert f"error: cannot write to {run.directory}: " in output
    assert [path.name for path in run.directory.iterdir()] == ["leases"]
