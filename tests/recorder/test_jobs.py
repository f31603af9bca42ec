"""Training jobs that know nothing of us, recorded as they are; what is planted is named first."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orbax_bench_core.inventory import read_checkpoint
from orbax_bench_core.records import Run, RunDirectory
from tests.golden.support import orbax_bench, said
from tests.support.processes import free_address, plain_environment, run_cli

JOBS = Path(__file__).parent / "jobs"


def job(name, *arguments):
    return [sys.executable, str(JOBS / f"{name}.py"), *map(str, arguments)]


def recorded(folder, name, *arguments, code=0):
    """Runs a job by the launcher, and returns what it printed."""
    done = run_cli("record", "-o", folder / "recording", "--", *job(name, *arguments))
    assert done.returncode == code, done.stderr
    return done.stdout


def diagnosed(folder, *flags, code=0):
    done = orbax_bench("diagnose", folder / "recording", "--json", *flags)
    assert done.code == code, done.out + done.err
    return json.loads(done.out)


def first_of(found):
    return found["findings"][0]["kind"] if found["findings"] else ""


@pytest.mark.slow
def test_a_job_without_trouble_is_recorded_and_nothing_is_named(tmp_path):
    assert recorded(tmp_path, "flax_loop", tmp_path / "checkpoints") == "trained 60 steps\n"
    files = list((tmp_path / "recording").glob("host_*/*"))
    assert len(files) == 1, "a data loader left a file, or the job none"
    found = diagnosed(tmp_path, "--suite", tmp_path / "job.yaml")
    assert found["findings"] == []
    assert found["committed"] == 12
    assert found["loads"]["count"] == 1
    assert found["steps"]["count"] == 59
    assert found["interval"]["best"] > found["interval"]["now"]
    assert "mesh=data8" in said("expand", tmp_path / "job.yaml")


def check_v1(found):
    assert found["findings"] == []
    assert (found["committed"], found["is_going"]) == (7, False)
    assert found["loads"]["count"] == 2
    assert found["steps"]["count"] == 23
    # `save_checkpointables` waits for the commit, whatever its event of a blocking part says.
    waits = {phase["name"]: phase["median"] for phase in found["phases"]}
    assert found["calls"]["most"] > waits["background_s"]


@pytest.mark.slow
def test_a_loop_of_v1_is_recorded_by_a_line(tmp_path):
    command = job("v1_loop", tmp_path / "checkpoints", tmp_path / "recording")
    done = subprocess.run(
        command, env=plain_environment(), capture_output=True, text=True, check=True
    )
    assert "7 saves (0 failed)" in done.stdout
    check_v1(diagnosed(tmp_path))


@pytest.mark.slow
def test_the_launcher_says_where_a_job_is_recorded_that_records_itself(tmp_path):
    command = job("v1_loop", tmp_path / "checkpoints", tmp_path / "own")
    done = run_cli("record", "-o", tmp_path / "recording", "--", *command)
    assert " saves (0 failed)" in done.stdout, done.stderr
    check_v1(diagnosed(tmp_path))
    assert not (tmp_path / "own").exists()


@pytest.mark.slow
def test_the_launcher_records_it_to_a_bucket_as_the_checkpoints_of_a_job_are(tmp_path, emulator):
    place = "gs://bench-bucket/recording"
    command = job("v1_loop", tmp_path / "checkpoints")
    done = run_cli("record", "-o", place, "--", *command, environment=emulator)
    assert done.returncode == 0, done.stderr
    shown = run_cli("diagnose", place, "--json", environment=emulator)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    check_v1(json.loads(shown.stdout))


@pytest.mark.slow
def test_a_job_as_maxtext_has_it_is_recorded_over_its_restarts(tmp_path):
    for _ in range(2):
        recorded(tmp_path, "maxtext_shaped", tmp_path / "checkpoints", 23)
    found = diagnosed(tmp_path, "--suite", tmp_path / "job.yaml")
    assert found["lives"] == 2
    assert found["committed"] == 9  # steps 0, 5, ... 20, and 25, ... 40 after the restart
    assert found["loads"]["count"] == 1
    assert found["steps"]["count"] == 2 * 22
    # The iterator is no array: a handler of its own saves it, and it is no part of the suite.
    text = (tmp_path / "job.yaml").read_text()
    assert "opt_state" in text
    assert "shape: [2, 64, 128]" in text
    assert "position" not in text
    assert "mesh=" in said("expand", tmp_path / "job.yaml")


@pytest.mark.slow
def test_what_is_planted_is_named_and_nothing_else(tmp_path):
    code = -signal.SIGKILL
    recorded(tmp_path, "flax_loop", tmp_path / "checkpoints", "full, stall, kill", code=code)
    found = diagnosed(tmp_path, code=1)
    assert [each["kind"] for each in found["findings"]] == ["failed", "cut off", "stalled"]
    failed, cut_off, stalled = (each["text"] for each in found["findings"])
    assert "step 15: " in failed
    assert "No space left on device" in failed
    assert "in the background, and the job was told" in failed
    assert "1 save never committed, step 55: " in cut_off
    assert "the last checkpoint before is step 50" in cut_off
    assert "1 save of 9 stalled: that of step 40" in stalled
    assert found["committed"] == 9


@pytest.mark.nightly
def test_memory_that_a_job_keeps_of_each_save_is_a_leak(tmp_path):
    recorded(tmp_path, "flax_loop", tmp_path / "checkpoints", "leak")
    found = diagnosed(tmp_path, code=1)
    assert first_of(found) == "leak"
    (kept,) = (each for each in found["kept"] if each["level"] == "host")
    assert 0.95 < kept["per_save"] < 1.2


def recorded_on_two_hosts(tmp_path, name, *arguments):
    address = free_address()
    launcher = [sys.executable, "-m", "orbax_bench_core.recorder", "-o", tmp_path / "recording"]
    processes = [
        subprocess.Popen(
            [*launcher, "--", *job(name, index, address, tmp_path / "checkpoints", *arguments)],
            env=plain_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    for process in processes:
        assert process.wait(300) == 0, process.stderr.read()
        process.stderr.close()


@pytest.mark.nightly
def test_a_job_with_the_emergency_manager_is_recorded(tmp_path):
    recorded_on_two_hosts(tmp_path, "emergency")
    found = diagnosed(tmp_path)
    assert found["hosts"] == 2
    assert found["committed"] == 5 + 3  # to the folders of its own, and to the one of all
    assert found["loads"]["count"] == 1


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["", "slow"])
def test_a_slow_host_is_named_and_none_of_two_equal_ones(tmp_path, fault):
    recorded_on_two_hosts(tmp_path, "two_hosts", *filter(None, [fault]))
    found = diagnosed(tmp_path, code=1 if fault else 0)
    assert first_of(found) == ("slow host" if fault else "")
    assert found["hosts"] == 2
    assert found["committed"] == 10
    if fault:
        assert "host 1" in found["findings"][0]["text"]


@pytest.mark.nightly
def test_the_suite_of_a_job_saves_the_arrays_of_the_job_in_the_same_operations(tmp_path):
    """How near their times are is in perf/README.md: a timed test asserts no measured figure."""
    recorded(tmp_path, "flax_loop", tmp_path / "checkpoints")
    found = diagnosed(tmp_path, "--suite", tmp_path / "job.yaml", "--as-run", tmp_path / "job")
    measured = ("--no-limits", "--keep-data", "--override", "num_repeats=2", "-o")
    done = run_cli("run", tmp_path / "job.yaml", *measured, tmp_path / "results")
    assert done.returncode == 0, done.stderr
    runs = [Run(RunDirectory(str(tmp_path / name))) for name in ("job", "results")]
    job_series, series = (run.series()[0] for run in runs)
    assert job_series.point.processes == series.point.processes
    assert job_series.point.mesh == series.point.mesh
    operations = [
        {sample.operation for repeat in run.repeats(one) for sample in repeat.records[0].samples}
        for run, one in zip(runs, (job_series, series), strict=True)
    ]
    assert {"save", "save_blocking", "save_background"} <= operations[0] & operations[1]
    kept = next((tmp_path / "results").rglob("_CHECKPOINT_METADATA")).parent
    assert saved_in(kept) == saved_in(found["checkpoint"])


def saved_in(checkpoint):
    """Returns shape, dtype and sharding of each array of a checkpoint."""
    arrays = read_checkpoint(str(checkpoint)).arrays
    assert arrays
    known = {tuple(map(str, one.path)): (one.zarr, one.spec or ()) for one in arrays}
    return {path: (zarr.shape, zarr.dtype, spec) for path, (zarr, spec) in known.items()}
