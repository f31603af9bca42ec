"""`orbax-bench calibrate`."""

import json

import pytest

from orbax_bench_core.analysis.noise import load
from tests.support.paired_runs import make_paired_run, make_separate_run  # noqa: F401


@pytest.fixture
def calibrate(monkeypatch, orbax_bench, tmp_path):
    """Runs `orbax-bench calibrate` with arguments, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: orbax_bench("calibrate", *arguments)


def test_identical_arms_are_counted_and_the_noise_is_kept(calibrate, make_paired_run, tmp_path):
    for day in range(3):
        make_paired_run(day)
    done = calibrate(".", "--save", "passport.json")
    assert (done.code, done.err) == (0, "")
    assert "0 of 3 A/A tests" in done.out
    assert "Passport: passport.json" in done.out
    (noise,) = load(str(tmp_path / "passport.json")).noise
    assert (noise.operation, noise.series, noise.size) == ("save", 3, 2**26)


def test_separate_runs_give_noise_and_no_test(calibrate, make_separate_run):
    done = calibrate(make_separate_run(0).root)
    assert (done.code, "no A/A tests" in done.out) == (0, True)
    assert "ext4" in done.out


def test_json_has_every_test_and_the_passport(calibrate, make_paired_run):
    found = json.loads(calibrate(make_paired_run(0).root, "--json").out)
    assert found["tests"][0]["word"] == "PASS"
    assert found["passport"]["noise"][0]["operation"] == "save"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("nowhere",), "holds no run"),
        (("day000", "--save", "/proc/passport.json"), "cannot write the passport"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(calibrate, make_paired_run, arguments, problem):
    make_paired_run(0)
    done = calibrate(*arguments)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert problem in done.err


def test_the_help_has_an_example(calibrate):
    assert "orbax-bench calibrate aa --save" in calibrate("--help").out
