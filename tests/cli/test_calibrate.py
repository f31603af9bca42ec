"""`orbax-bench calibrate`."""

import json
import types

import pytest

from orbax_bench_core.cli import series
from tests.support.paired_runs import make_paired_run, make_separate_run  # noqa: F401
from tests.support.shown import assert_accepted


@pytest.fixture
def calibrate(monkeypatch, orbax_bench, tmp_path):
    """Runs `orbax-bench calibrate` with arguments, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: orbax_bench("calibrate", *arguments)


def test_the_power_at_the_noise_of_the_suite_is_a_table(calibrate, make_paired_run):
    place = make_paired_run(0).root
    found = json.loads(calibrate(place, "--json").out)
    power = {row["slow_down"]: row for row in found["power"]}
    assert list(power) == [0.0, 0.05, 0.1, 0.2, 0.5]
    words = ("REGRESSION", "PASS", "INCONCLUSIVE")
    for row in power.values():
        assert sum(row[word] for word in words) == pytest.approx(1.0)
    assert power[0.0]["REGRESSION"] <= 0.01
    assert power[0.5]["PASS"] == 0.0
    said = calibrate(place).out
    assert len(said.splitlines()) <= 20
    assert_accepted(said)
    text = calibrate(place, "--details").out
    assert "REGRESSION / PASS / INCONCLUSIVE in percent of comparisons of up to 60" in text
    cells = [f"{100 * row['REGRESSION']:.0f} / " for row in power.values()]
    (line,) = [line for line in text.splitlines() if line.count(" / ") == 2 * len(power)]
    assert [cell for cell in cells if cell in line] == cells


def test_several_workers_tell_how_much_they_differ(calibrate, make_paired_run, make_point):
    pair = make_point(candidate=make_point(options={"a": 1}))
    runs = [make_paired_run(day, pair=pair, blocks=10).root for day in range(12)]
    text = calibrate(*runs, "--details").out
    assert "save, the ratio of two options, one worker to the next: " in text
    assert "12 workers with 10 operations each" in text


@pytest.fixture
def measured(monkeypatch, make_paired_run):
    """Stands in for measurements: each leaves a paired run, and is kept with its suite."""
    made = []

    def measurement(experiment, suite, directory, how):
        made.append(types.SimpleNamespace(suite=suite.suite, folder=directory))
        make_paired_run(len(made), folder=directory)

    monkeypatch.setattr(series, "Measurement", measurement)
    monkeypatch.setattr(series, "_compared", lambda run: None)
    return made


def test_a_suite_is_measured_against_itself_in_workers_of_their_own(
    calibrate, measured, write_suite
):
    done = calibrate("--suite", write_suite(), "-o", "aa", "--minutes", "0", "--details")
    assert done.code == 0, done.err
    (run,) = measured
    assert run.folder.endswith("aa/aa_000")
    assert (run.suite.gate.lives, run.suite.gate.tolerance, run.suite.gate.looks) == (
        "always",
        0.0,
        (16,),
    )
    assert run.suite.arms.baseline == run.suite.arms.candidate
    assert "A/A tests" in done.out
    assert "Process noise is not known" in done.out
    assert "aa 0, after 0.0 of 0 minutes" in done.err


def test_one_environment_becomes_two_that_are_equal(calibrate, measured, write_suite):
    extra = "environments: [{name: a, requirements: [x==1]}]\n"
    calibrate("--suite", write_suite(extra=extra), "-o", "aa", "--minutes", "0")
    suite = measured[0].suite
    assert [each.name for each in suite.environments] == ["a", "a-again"]
    assert len({each.identity for each in suite.environments}) == 1
    assert (suite.arms.baseline.environment, suite.arms.candidate.environment) == ("a", "a-again")


def test_arms_in_one_worker_are_measured_too(calibrate, measured, write_suite):
    extra = "arms: {candidate: {options: {use_ocdbt: false}}}\n"
    calibrate("--suite", write_suite(extra=extra), "-o", "aa", "--minutes", "0")
    assert [run.folder.rsplit("/")[-1] for run in measured] == ["aa_000", "options_000"]
    assert measured[1].suite.gate.looks == (10,)


@pytest.mark.parametrize("arguments", [(), ("--suite", "s.yaml"), ("-o", "out")])
def test_nothing_to_read_and_half_of_a_measurement_are_refused(calibrate, arguments):
    done = calibrate(*arguments)
    assert done.code == 2
