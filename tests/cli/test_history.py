"""`orbax-bench history`."""

import json
import re
import shutil
from pathlib import Path

import pytest

from orbax_bench_core.config import GateConfig
from orbax_bench_core.publishing import publish
from tests.support.paired_runs import make_nightly, make_paired_run, make_separate_run  # noqa: F401


@pytest.fixture
def history(monkeypatch, orbax_bench, tmp_path):
    """Runs `orbax-bench history` with arguments, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: orbax_bench("history", *arguments)


@pytest.mark.parametrize(
    ("kind", "said"), [("failures", "first attempts failed"), ("stalls", "operations stalled")]
)
def test_what_is_too_rare_for_one_night_is_found_within_a_week(
    history, orbax_bench, make_paired_run, kind, said
):
    for day in range(7):
        made = make_paired_run(day, blocks=10, **{kind: True})
        assert orbax_bench("compare", made.root).code != 3
    told = " ".join(history(".").out.split())
    assert re.search(rf"✗ WORSE THAN ITS BASELINE: .*1\d of 1\d0 {said} .* and 0 with the", told)
    orbax_bench("site", ".")
    assert f"{said} with the candidate" in Path("index.html").read_text()


def test_what_a_morning_page_has_read_is_not_read_again(history, orbax_bench, make_nightly):
    runs = make_nightly([1.0, 1.0, 1.0])
    for run in runs:
        publish(run)
    before = history(".", "--json").out
    orbax_bench("site", ".")
    for run in runs:
        shutil.rmtree(run.root / "records")
    for given in (".", "./*"):
        assert json.loads(history(given, "--json").out)["series"] == json.loads(before)["series"]
    tables = runs[0].root / "metrics.json"
    tables.write_text(tables.read_text() + " ")
    again = json.loads(history(".", "--json").out)
    assert len(again["series"][0]["runs"]) == 2, "its tables have changed, and its records are gone"


def test_a_run_that_keeps_no_verdict_is_judged_as_compare_does(
    history, orbax_bench, make_paired_run
):
    run = make_paired_run(0, 1.05, blocks=30, sigma=0.03).root
    (point,) = json.loads(orbax_bench("compare", run, "--json").out)["points"]
    verdict = point["operations"][0]["verdict"]
    (series,) = json.loads(history(run, "--json").out)["series"]
    (found,) = series["runs"]
    assert (found["value"], found["low"], found["high"]) == (
        verdict["ratio"],
        verdict["low"],
        verdict["high"],
    )
    assert (found["n"], point["blocks"]) == (verdict["operations"] // 2, 30)


def test_cpu_times_that_decide_are_the_series_that_is_shown(history, make_paired_run):
    for day in range(2):
        run = make_paired_run(day, blocks=10, sigma=0.3, cpu_sigma=0.02)
        gate = GateConfig(primary=("save:cpu",))
        run.write_info(run.read_info().model_copy(update={"gate": gate}))
    assert [line for line in history(".").out.splitlines() if line.startswith("save:cpu ")]
    found = json.loads(history(".", "--json").out)["series"]
    shown = {series["operation"]: series for series in found}
    assert [name for name, series in shown.items() if series["primary"]] == ["save:cpu"]
    assert [run["stalls"]["operations"] for run in shown["save:cpu"]["runs"]] == [20, 20]


def test_a_run_that_is_too_short_for_a_verdict_names_what_it_shows(history, make_paired_run):
    told = history(make_paired_run(0, blocks=1).root, "--details").out
    assert re.search(r" 1 +\d\.\d{3}x \(median of blocks\) +–", told)
    assert "? NOT JUDGED: it takes 18 runs of a ratio to flag a change" in told


def test_nothing_is_steady_before_a_clear_step_could_be_flagged(history, make_nightly):
    """It was from 10 runs on, through nights of +25 %."""
    make_nightly([*[1.0] * 8, *[1.25] * 9])
    told = history(".").out
    assert "it takes 18 runs of a ratio to flag a change, and the longest has 17" in told
    assert "Changes are looked for from 18 runs on." in told


@pytest.mark.parametrize(("step", "word"), [(1.0, "✓ STEADY"), (1.25, "? FLAGGED")])
def test_of_enough_runs_it_says_whether_they_changed(history, make_nightly, step, word):
    make_nightly([*[1.0] * 10, *[step] * 10])
    assert word in history(".").out


def code(commit):
    """What a record says that measured the code of a commit; None for one that does not say."""
    source = {} if commit is None else {"commit": commit, "dirty": False}
    return {"code": {"generator": source, "suite": source} if source else None}


@pytest.mark.parametrize("make", ["make_paired_run", "make_separate_run"])
def test_every_night_says_which_revision_of_the_code_it_measured(history, request, make, tmp_path):
    make = request.getfixturevalue(make)
    commits = ["a" * 40, "a" * 40, "b" * 40, None]
    for day, commit in enumerate(commits):
        make(day, provenance=code(commit))
    done = history(".", "--html", "page.html", "--details")
    found = json.loads(history(".", "--json").out)
    said = [run["code"] for run in found["series"][0]["runs"]]
    assert said == ["aaaaaaaaaaaa", "aaaaaaaaaaaa", "bbbbbbbbbbbb", "unknown"]
    page = (tmp_path / "page.html").read_text()
    assert page.count("aaaaaaaaaaaa") == 3  # and once for both nights
    assert "code under test" in page
    assert re.search("code (under test: )?aaaaaaaaaaaa", done.out)
    for revision in ("aaaaaaaaaaaa", "bbbbbbbbbbbb", "unknown"):
        assert revision in done.out


def test_a_night_of_two_revisions_has_both(history, make_run, make_record):
    records = [
        make_record(repeat=repeat, times={"save": 1.0}, provenance=code(letter * 40))
        for repeat, letter in enumerate("aab")
    ]
    make_run(records, num_repeats=3, folder="day000")
    (series,) = json.loads(history(".", "--json").out)["series"]
    assert series["runs"][0]["code"] == "aaaaaaaaaaaa and bbbbbbbbbbbb"


@pytest.mark.slow
def test_a_change_of_the_code_is_told_beside_its_flag(history, make_paired_run):
    for day in range(20):
        commit = ("a" if day < 12 else "b") * 40
        make_paired_run(day, 1.0 if day < 12 else 1.2, provenance=code(commit))
    (series,) = json.loads(history(".", "--json").out)["series"]
    (change,) = series["changes"]
    assert "code under test: aaaaaaaaaaaa → bbbbbbbbbbbb" in change["differs"]


def test_a_run_that_is_torn_is_named_and_the_others_are_shown(history, make_separate_run):
    stray = make_separate_run(0).root.parent / "stray"
    stray.mkdir()
    (stray / "run.json").write_text("{")
    done = history(".")
    assert (done.code, done.err) == (1, "")
    assert "Not shown: 1 left out" in done.out
    assert f"{stray}/run.json: not readable" in done.out
