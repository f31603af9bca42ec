"""`orbax-bench accept`: a known regression is silent until it grows, or measures something else."""

import json
import re
import shutil

import pytest

from tests.support.paired_runs import make_paired_run, orbax  # noqa: F401 - fixture
from tests.support.webhook import webhook  # noqa: F401 - fixture

BLOCKS = 10
REASON = "known: issue 1234"
ACCEPTED = r"saves \+3\d % \(up to \+4\d %\)"


@pytest.fixture
def night(make_paired_run, make_point, orbax_bench, webhook, tmp_path, monkeypatch):
    """Measures a night by hand, and judges it; returns how `compare` ended."""
    monkeypatch.setenv("ORBAX_BENCH_NOTIFY", webhook.url)

    def judge(day, ratio, *, jax="0.10.2", **changed):
        ran = {"versions": {"jax": jax, "orbax-checkpoint": "0.12.7"}}
        folder = tmp_path / "nights" / str(day)
        run = make_paired_run(day, ratio, blocks=BLOCKS, folder=folder, provenance=ran)
        run.write_info(run.read_info().model_copy(update=changed))
        return orbax_bench("compare", run.root)

    return judge


@pytest.fixture
def accept(orbax_bench, tmp_path, night):
    """Accepts what the newest night found."""

    def run(*more, reason=REASON, place="nights", suite="a suite"):
        return orbax_bench("accept", tmp_path / place, suite, "--reason", reason, *more)

    return run


@pytest.fixture
def morning(orbax_bench, tmp_path):
    """Returns the morning page: its headline, the row of the suite and the page."""

    def look():
        lines = orbax_bench("site", tmp_path / "nights").out.splitlines()
        [headline] = [line for line in lines if line.endswith("you")]
        return headline, lines[1], (tmp_path / "nights" / "index.html").read_text()

    return look


def published(tmp_path, orbax_bench, day):
    """Writes `verdicts.json` of a night, as its command does at its end."""
    done = orbax_bench("step", "compare-baseline", "-o", tmp_path / "nights" / str(day))
    assert done.code == 0, done.err


def test_what_is_accepted_is_silent_until_it_grows(
    night, accept, morning, orbax_bench, webhook, tmp_path
):
    assert night(0, 1.3).code == 3
    published(tmp_path, orbax_bench, 0)
    assert morning()[0] == "1 of 1 suite needs you"
    done = accept()
    assert (done.code, done.err) == (0, "")
    assert re.match(rf"accepted: {ACCEPTED}, by .* on [\d-]+: {REASON}\nFile: ", done.out)
    again = night(1, 1.3)
    assert again.code == 0
    assert "REGRESSION" in again.out
    assert re.search(rf"^accepted: {ACCEPTED}, by .*: {REASON}$", again.out, re.MULTILINE)
    published(tmp_path, orbax_bench, 1)
    copied = shutil.copy(tmp_path / "nights" / "1" / "verdicts.json", tmp_path)  # by an engine
    assert orbax_bench("step", "enforce-verdict", "REGRESSION", "--verdicts", copied).code == 0
    headline, row, page = morning()
    assert headline == "None of 1 suite needs you"
    assert "– ACCEPTED" in row
    assert REASON in page
    assert webhook.states == ["REGRESSION"]
    grown = night(2, 1.7)
    assert grown.code == 3
    said = r"no longer accepted: saves of save_restore\[.*\] have grown to \+(69|70|71) % \("
    assert re.search(said, grown.out)
    published(tmp_path, orbax_bench, 2)
    assert morning()[0] == "1 of 1 suite needs you"
    assert webhook.states == ["REGRESSION", "REGRESSION"]
    assert "no longer accepted: " in "".join(webhook.posted[-1][1]["lines"])


def test_growth_right_after_it_was_accepted_is_told(night, accept, orbax_bench, webhook, tmp_path):
    night(0, 1.3)
    published(tmp_path, orbax_bench, 0)
    accept(place="nights/0")
    assert night(1, 1.9).code == 3
    assert webhook.states == ["REGRESSION", "REGRESSION"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"suite_identity": "another"}, "the suite has changed"),
        ({"jax": "0.11.0"}, "the baseline has changed (jax: 0.10.2 → 0.11.0)"),
    ],
    ids=["suite", "baseline"],
)
def test_another_suite_or_baseline_ends_it(night, accept, orbax_bench, tmp_path, changed, why):
    night(0, 1.3)
    published(tmp_path, orbax_bench, 0)
    accept()
    done = night(1, 1.3, **changed)
    assert done.code == 3
    assert re.search(rf"no longer accepted: {re.escape(why)}; accepted was {ACCEPTED}", done.out)


def test_a_pass_says_that_the_file_can_go(night, accept, orbax_bench, tmp_path):
    night(0, 1.3)
    published(tmp_path, orbax_bench, 0)
    accept()
    done = night(1, 1.0)
    [file] = (tmp_path / "nights").glob("accepted-a-suite-*.json")
    assert done.code == 0
    assert f"remove {file} to hear of it when it returns" in done.out


def test_who_accepted_what_and_when_is_in_the_file_and_a_damaged_one_covers_nothing(
    night, accept, orbax_bench, tmp_path
):
    night(0, 1.3)
    published(tmp_path, orbax_bench, 0)
    accept()
    [file] = (tmp_path / "nights").glob("accepted-*.json")
    kept = json.loads(file.read_text())
    assert {*kept} >= {"accepted_by", "accepted_at", "reason", "run_id", "suite_identity"}
    assert (kept["suite"], kept["run_id"], kept["reason"]) == ("a suite", "run000", REASON)
    [time] = kept["times"]
    assert 1.25 < time["ratio"] < time["most"] <= 1.15 * time["ratio"]
    file.write_text(json.dumps({**kept, "times": []}))
    done = night(1, 1.3)
    assert done.code == 3
    assert "its acceptance covers nothing: " in done.out
    assert "times: " in done.out


@pytest.mark.parametrize(
    ("ratio", "given", "why"),
    [
        (1.0, {}, "its word is PASS: there is no regression to accept"),
        (1.3, {"reason": " "}, "--reason: give why it is accepted"),
        (1.3, {"suite": "none"}, "has no verdict of 'none': it has a suite"),
        (1.3, {"place": "nowhere"}, "nowhere is no directory"),
    ],
)
def test_what_cannot_be_accepted_is_a_mistake(
    night, accept, orbax_bench, tmp_path, ratio, given, why
):
    night(0, ratio)
    published(tmp_path, orbax_bench, 0)
    done = accept(**given)
    assert (done.code, done.out) == (2, "")
    assert why in done.err
    assert not list((tmp_path / "nights").glob("accepted-*"))
