"""`orbax-bench recovery`, with workers that train until they are killed."""

import json

import pytest

from tests.contents.test_contents import check_list
from tests.support.fake_cli import fake_bench
from tests.support.shown import next_command

SUITE = """
suite_name: drilled
num_repeats: 2
execution: {warmups: 0, retries: 1}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks:
- {generator: tests.support.scripted.Scripted, options: %s}
%s
"""


@pytest.fixture
def recovery(tmp_path):
    """Drills a scripted suite, and returns how the command ended."""

    def command(options="{}", extra="", *flags):
        suite = tmp_path / "suite.yaml"
        suite.write_text(SUITE % (options, extra))
        words = ("recovery", suite, "-o", tmp_path / "run", "--no-lock", *flags)
        return fake_bench(*words)

    return command


@pytest.mark.slow
def test_drills_are_shown_and_shown_anew(recovery, tmp_path, orbax_bench):
    assert orbax_bench("site", tmp_path).code == 0
    done = recovery("{}", "", "--quiet")
    assert done.code == 0, done.err
    assert "2 of 2 drills came back" in (tmp_path / "index.html").read_text()
    assert "✓ Scripted" not in done.out + done.err
    assert "2 of 2 drills came back" in done.out
    assert 'href="recovery.html"' in (tmp_path / "run" / "report.html").read_text()
    again = orbax_bench("recovery", tmp_path / "run", "--add-start", "180")
    assert again.code == 0
    assert "180 s of it given" in again.out
    assert orbax_bench(*next_command(again.out)).code == 0
    assert orbax_bench(*next_command(done.out)).code == 0
    assert orbax_bench("recovery", tmp_path / "run").code == 0
    report = (tmp_path / "run" / "report.md").read_text()
    assert "2 of 2 drills came back" in report
    assert "180 s" not in report
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "complete"
    check_list(tmp_path / "run")


@pytest.mark.slow
def test_a_drill_is_not_traced_and_says_so(recovery):
    refused = recovery("{enable_trace: true}")
    assert refused.code == 2
    assert "has `enable_trace: true`: what is traced is a warm-up" in refused.err


@pytest.mark.slow
def test_a_drill_that_came_back_at_its_second_attempt_has_not_come_back(
    recovery, tmp_path, orbax_bench
):
    assert orbax_bench("site", tmp_path).code == 0
    done = recovery("{act: raise, act_at: '0', first_attempts: true}", "", "--quiet")
    assert "1 of 2 drills came back" in done.out, done.err
    assert done.code == 1
    assert orbax_bench("recovery", tmp_path / "run").code == 1
    assert "✗ not back" in (tmp_path / "index.html").read_text()


@pytest.mark.nightly
@pytest.mark.extended
def test_arms_end_in_a_verdict_on_the_recovery(recovery, tmp_path, orbax_bench):
    extra = "arms: {candidate: {options: {load_s: 3.0}}}\ngate: {looks: [10]}"
    done = recovery("{load_s: 0.02}", extra, "--json")
    assert done.code == 3, done.out + done.err
    assert orbax_bench("recovery", tmp_path / "run").code == 3
    (verdict,) = json.loads(done.out)["verdicts"]
    assert verdict["word"] == "REGRESSION"
    primary = [phase["phase"] for phase in verdict["phases"] if phase["primary"]]
    assert primary == ["recovery"]


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ((), "is not a run directory"),
        (("--override", "num_repeats=3"), "give --output-directory"),
        (("--notify", "https://example.com"), "--notify reports on a suite that is measured"),
    ],
)
def test_mistakes_are_told(orbax_bench, write_suite, flags, problem):
    done = orbax_bench("recovery", write_suite(), *flags)
    assert (done.code, done.out) == (2, "")
    assert problem in done.err


def test_a_suite_without_a_trainer_is_refused_before_anything_is_measured(
    orbax_bench, write_suite, tmp_path
):
    done = orbax_bench("recovery", write_suite(), "-o", tmp_path / "run")
    assert done.code == 2
    assert "training_job" in done.err
    assert not list((tmp_path / "run").glob("records/*"))
