"""`orbax-bench baseline`: capture, list, show, promote, compare."""

import json
import shutil

import pytest

from orbax_bench_core.records import ErrorInfo
from tests.support.paired_runs import make_paired_run, make_separate_run  # noqa: F401 - fixtures


@pytest.fixture
def baseline(monkeypatch, orbax_bench, tmp_path):
    """Runs `orbax-bench baseline` with arguments, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: orbax_bench("baseline", *arguments)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("filled") / "reg"


@pytest.fixture
def filled(baseline, make_separate_run, kept):
    """A registry `reg` with a capture of six runs; the first is promoted. It is made once."""
    if not kept.exists():
        for day in range(6):
            run = make_separate_run(day)
            options = ["--promote", "--note", "the first"] if day == 0 else []
            assert baseline("capture", kept, run.root, "--label", f"v{day}", *options).code == 0
    shutil.copytree(kept, "reg")
    return baseline


def test_capturing_says_where_it_lies_and_how_to_undo(baseline, make_separate_run):
    done = baseline("capture", "reg", make_separate_run(0).root, "--promote")
    assert (done.code, done.err) == (0, "")
    assert "captured 1 point:" in done.out
    assert "/reg/c0ffee/" in done.out
    assert "Undo it with `orbax-bench baseline promote " in done.out


def test_the_arm_of_a_paired_run_can_be_chosen(baseline, make_paired_run, make_point):
    pair = make_point(candidate=make_point(options={"use_ocdbt": False}))
    baseline("capture", "reg", make_paired_run(0, pair=pair).root, "--arm", "baseline")
    (found,) = json.loads(baseline("list", "reg", "--json").out)["captures"]
    assert found["arm"] == "baseline"
    assert [point["point_id"] for point in found["points"]] == [pair.arm("baseline").id]


def test_the_list_shows_the_newest_first_and_what_the_baseline_is(filled):
    lines = filled("list", "reg").out.splitlines()[2:]
    assert [line.split()[1] for line in lines] == ["v5", "v4", "v3", "v2", "v1", "v0"]
    assert [line.split()[1] for line in lines if line.split()[-1] == "all"] == ["v0"]


def test_show_tells_times_by_point_and_how_the_baseline_came_to_be(filled):
    said = filled("show", "reg").out
    assert "save_restore[use_ocdbt=true]" in said
    assert " from v0/" in said
    assert "the first" in said


def test_show_tells_what_a_capture_is(filled):
    said = filled("show", "reg", "v3").out
    assert "run003, 2026-03-05 06:00 UTC" in said
    assert "2 x EPYC, ext4" in said


def test_undoing_a_promotion(filled):
    assert "v0/" in filled("promote", "reg", "--to", "v4", "--note", "why").out
    assert "was v4/" in filled("promote", "reg", "--to", "previous").out
    found = json.loads(filled("show", "reg", "--json").out)
    assert next(iter(found["baseline"].values())).startswith("v0/")
    assert [one["note"] for one in found["promotions"]] == ["the first", "why", ""]


def test_a_slower_run_is_a_warning_and_an_equal_one_is_none(orbax_bench, filled, make_separate_run):
    slower = orbax_bench("compare", "reg", make_separate_run(9, 2.0).root)
    assert (slower.code, "REGRESSION unpaired" in slower.out) == (0, True)
    equal = orbax_bench("compare", "reg", make_separate_run(8).root)
    assert (equal.code, "PASS unpaired" in equal.out) == (0, True)


@pytest.mark.parametrize("spelling", ["reg", "reg/v0", "reg/v0.json"])
def test_the_past_comes_from_the_registry_that_the_baseline_lies_in(
    orbax_bench, filled, make_separate_run, spelling
):
    report = json.loads(orbax_bench("compare", spelling, make_separate_run(9).root, "--json").out)
    assert (report["word"], report["baseline"]) == ("PASS", spelling)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("capture", "{run}", "reg"), "is a run directory; the registry comes first, then the run"),
        (("capture", "reg", "nowhere"), "is not a run directory: it does not exist"),
        (("capture", "reg", "{run}", "--label", "a/b"), "'a/b' cannot be a label"),
        (("capture", "s3://bucket/reg", "{run}"), "local paths and gs:// only"),
        (("list", "nowhere"), "nowhere is not a registry: nothing was captured there"),
        (("show", "reg", "zz"), "no capture is called 'zz'"),
        (("promote", "reg", "--to", "zz"), "no capture is called 'zz'"),
        (("promote", "reg", "--point", "zz"), "--point: 'zz' is not one of its points"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(filled, make_separate_run, arguments, problem):
    run = make_separate_run(9).root
    done = filled(*(argument.format(run=run) for argument in arguments))
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert problem in done.err
    assert len(done.err.splitlines()) == 1


def test_a_run_in_which_nothing_passed_is_not_captured(baseline, make_run, make_record):
    error = ErrorInfo(type="ValueError", message="no")
    run = make_run([make_record(status="failed", error=error)])
    done = baseline("capture", "reg", run.root)
    assert (done.code, done.out) == (
        2,
        "left out save_restore[use_ocdbt=true]: a repeat did not pass: ValueError\n",
    )
    assert "no point has passed in full" in done.err


def test_every_help_has_an_example(baseline, monkeypatch):
    for name in ("capture", "list", "show", "promote"):
        assert f"orbax-bench baseline {name} " in baseline(name, "--help").out


def test_a_narrow_list_breaks_no_word(filled, monkeypatch):
    from rich.console import Console

    monkeypatch.setattr("orbax_bench_core.cli.results.results_console", lambda: Console(width=80))
    heading, _, newest, *_ = filled("list", "reg").out.splitlines()
    assert heading.split() == ["id", "revision", "measured", "baseline", "of"]
    identity, revision, date, time = newest.split()
    assert (revision, len(identity), len(date), len(time)) == ("v5", 25, 10, 5)
