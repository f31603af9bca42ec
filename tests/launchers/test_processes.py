"""Processes of one machine as hosts, through the command line."""

from pathlib import Path

import pytest

from orbax_bench_core.launchers import Launch
from tests.cli.conftest import orbax_bench, run_main  # noqa: F401 - fixtures
from tests.support.launching import QUICK, launch, records, write_suite


@pytest.fixture
def suite(tmp_path):
    return write_suite(tmp_path)


def test_a_dry_run_shows_each_hosts_command_and_no_token(orbax_bench, suite, tmp_path):
    out = tmp_path / "run"
    words = ("--on", "processes", "--hosts", 2, "--dry-run", "--", "-v")
    done = orbax_bench("launch", suite, "-o", out, *words)
    assert done.code == 0, done.err
    assert "ORBAX_BENCH_HOST=1 ORBAX_BENCH_NUM_HOSTS=2" in done.out
    assert f"orbax-bench run '{suite}' -o {out} -v" in done.out
    assert "TOKEN=" not in done.out
    assert not out.exists()


@pytest.mark.nightly
@pytest.mark.extended
def test_drills_are_launched_on_several_hosts(tmp_path):
    suite = Path(__file__).parents[2] / "examples" / "recovery.yaml"
    words = ("--on", "processes", "--hosts", 2, "--command", "recovery")
    few = ("--override", "num_repeats=1", "--", "--no-lock")
    done = launch(suite, "-o", tmp_path / "run", *words, *few)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 drill came back" in done.stdout
    assert (tmp_path / "run" / "recovery.html").exists()


def test_calibrate_has_its_suite_behind_a_flag_wherever_it_is_sent(orbax_bench, suite, tmp_path):
    out = tmp_path / "shared"
    words = ("--on", "processes", "--hosts", 2, "--command", "calibrate", "--dry-run")
    done = orbax_bench("launch", suite, "-o", out, *words)
    assert f"calibrate --suite '{suite}' -o {out}" in done.out
    launched = Launch(
        name="ob",
        command=("orbax-bench", "calibrate", "--suite", "a.yaml", "-o", "gs://bucket/aa"),
        output_directory="gs://bucket/aa",
    )
    assert launched.suite == "a.yaml"
    assert launched.with_suite("b.yaml")[2:4] == ("--suite", "b.yaml")


@pytest.mark.nightly
def test_each_process_is_a_host_of_one_run(suite, tmp_path):
    out = tmp_path / "run"
    done = launch(suite, "-o", out, "--on", "processes", "--hosts", 2, *QUICK)
    assert done.returncode == 0, done.stdout + done.stderr
    found = records(out)
    assert sorted(record["host"] for record in found) == [0, 1]
    assert {record["status"] for record in found} == {"passed"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--on", "jobste"], "--on jobste: there is no such place; did you mean 'jobset'?"),
        (["--on", "processes", "--set", "queue=a"], "unknown key"),
        (["--on", "processes", "--set", "queue"], "give KEY=VALUE"),
        (["--on", "processes", "--slices", "2"], "--slices 2 needs --tpu"),
        (["--on", "processes", "--tpu", "v5e:4x8", "--hosts", "3"], "has 8 hosts of 4 chips"),
        (
            ["--on", "processes", "--tpu", "v5e:4x8", "--override", "execution.processes=3"],
            "has 8 hosts of 4 chips, and a point of execution.processes 3 does not use all",
        ),
        (["--on", "processes", "--name", "Big"], "lower case"),
        (["--on", "processes", "--name", "a" * 41], "at most 40 lower case letters"),
    ],
)
def test_what_cannot_be_launched_is_one_message(orbax_bench, suite, tmp_path, words, said):
    done = orbax_bench("launch", suite, "-o", tmp_path / "run", *words)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
