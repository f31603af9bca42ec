"""`orbax-bench baseline`: capture, list, show, promote, compare."""

import json
import re
import shutil

import pytest

from orbax_bench_core.provenance import code_under_test
from orbax_bench_core.records import ErrorInfo
from tests.support.paired_runs import (  # noqa: F401 - fixtures
    make_paired_run,
    make_separate_run,
)
from tests.support.repositories import git, repository  # noqa: F401 - fixtures
from tests.support.shown import assert_accepted


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


def test_a_registry_says_first_what_is_the_baseline(filled):
    said = filled("list", "reg").out
    assert "6 captures; the baseline is v0/" in said
    assert len(said.splitlines()) <= 20
    assert "a suite" in filled("list", "reg", "--details").out
    said = filled("show", "reg").out
    assert re.search(r"The baseline is v0/\S+ \(1 point\), since .* UTC: the first\.", said)
    assert re.search(r"save +6 +993 ms +2 %", said)
    assert "v0/" in filled("show", "reg", "--details").out.partition("Promotions")[2]
    shown = filled("show", "reg", "v3").out
    assert re.search(r"v3/\S+: 1 point of a suite, 0 of them the baseline\.", shown)


def test_a_registry_without_a_baseline_says_how_to_choose_one(baseline, make_separate_run):
    baseline("capture", "reg", make_separate_run(0).root)
    for words in (("list", "reg"), ("show", "reg")):
        said = baseline(*words).out
        assert "one is the baseline yet" in said
        assert_accepted(said)


def test_undoing_a_promotion(filled):
    assert "v0/" in filled("promote", "reg", "--to", "v4", "--note", "why").out
    assert "was v4/" in filled("promote", "reg", "--to", "previous").out
    found = json.loads(filled("show", "reg", "--json").out)
    assert next(iter(found["baseline"].values())).startswith("v0/")
    assert [one["note"] for one in found["promotions"]] == ["the first", "why", ""]


def test_a_slower_run_is_a_warning_and_an_equal_one_is_none(orbax_bench, filled, make_separate_run):
    slower = orbax_bench("compare", "reg", make_separate_run(9, 2.0).root)
    assert (slower.code, "✗ REGRESSION: save" in slower.out) == (0, True)
    equal = orbax_bench("compare", "reg", make_separate_run(8).root)
    assert (equal.code, "✓ PASS: save" in equal.out) == (0, True)


@pytest.mark.parametrize("spelling", ["reg", "reg/v0", "reg/v0.json"])
def test_the_past_comes_from_the_registry_that_the_baseline_lies_in(
    orbax_bench, filled, make_separate_run, spelling
):
    report = json.loads(orbax_bench("compare", spelling, make_separate_run(9).root, "--json").out)
    assert (report["word"], report["baseline"]) == ("PASS", spelling)


def test_a_run_in_which_nothing_passed_is_not_captured(baseline, make_run, make_record):
    error = ErrorInfo(type="ValueError", message="no")
    run = make_run([make_record(status="failed", error=error)])
    done = baseline("capture", "reg", run.root)
    assert (done.code, done.out) == (
        2,
        "left out save_restore[use_ocdbt=true]: a repeat did not pass: ValueError\n",
    )
    assert "no point has passed in full" in done.err


@pytest.fixture
def bench(monkeypatch, orbax_bench, repository, tmp_path):
    """Runs `orbax-bench` in the user's repository; the registry lies outside."""
    monkeypatch.chdir(repository)
    registry = str(tmp_path / "reg")
    return lambda *words: orbax_bench(*(word.format(reg=registry) for word in map(str, words)))


@pytest.fixture
def measured(make_separate_run, make_point, repository):
    """Writes a run of the user's class as the repository is now; returns its directory."""

    def make(day, seconds=1.0, **fields):
        code = code_under_test({"mine.Mine": str(repository / "benches" / "mine.py")}, "")
        point = make_point(benchmark="mine.Mine")
        provenance = {"code": code.of(point)}
        return make_separate_run(day, seconds, point=point, provenance=provenance, **fields).root

    return make


@pytest.fixture
def commit(git, repository):
    """Commits another state of the benchmark; returns the commit."""

    def make(value):
        (repository / "benches" / "mine.py").write_text(f"value = {value + 100}\n")
        git("commit", "-qam", f"value {value}")
        return git("rev-parse", "HEAD")

    return make


def captures(bench):
    return json.loads(bench("baseline", "list", "{reg}", "--json").out)["captures"]


def chosen(bench, name):
    shown = bench("baseline", "show", "{reg}", name, "--json")
    return json.loads(shown.out)["run_id"] if shown.code == 0 else shown.err


def test_two_revisions_of_a_benchmark_are_two_revisions(bench, measured, commit):
    commits = []
    for day in (1, 2):
        commits.append(commit(day))
        bench("baseline", "capture", "{reg}", measured(day))
    assert [each["revision"] for each in captures(bench)] == commits[::-1]


@pytest.mark.slow
def test_a_capture_is_found_by_commit_tag_branch_and_nearest(bench, measured, commit, git):
    first = commit(1)
    git("tag", "v1")
    bench("baseline", "capture", "{reg}", measured(1))
    second = commit(2)
    bench("baseline", "capture", "{reg}", measured(2))
    commit(3)
    names = {first: "run001", first[:7]: "run001", "v1": "run001", second[:9]: "run002"}
    names |= {"trunk": "run002", "nearest": "run002", "HEAD": "run002", "HEAD~1": "run002"}
    assert {name: chosen(bench, name) for name in names} == names
    git("checkout", "-q", first)
    assert chosen(bench, "nearest") == "run001"
    assert "no capture has the commit of 'trunk~0'" in chosen(bench, "trunk~0")


def test_the_nearest_of_a_merge_is_the_fewest_commits_away(bench, measured, commit, git):
    commit(1)
    bench("baseline", "capture", "{reg}", measured(1))
    git("checkout", "-qb", "side")
    commit(2)
    bench("baseline", "capture", "{reg}", measured(2))
    git("checkout", "-q", "trunk")
    for value in (3, 4):
        commit(value)
    git("merge", "-q", "-X", "ours", "-m", "both", "side")
    assert chosen(bench, "nearest") == "run002"


def test_compare_takes_the_nearest_and_names_both_revisions(bench, measured, commit):
    first = commit(1)
    bench("baseline", "capture", "{reg}", measured(1))
    second = commit(2)
    run = measured(2)
    bench("baseline", "capture", "{reg}", run)  # a run is no baseline of itself
    report = json.loads(bench("compare", "{reg}/nearest", run, "--json").out)
    assert f"/{first}/" in report["baseline"]
    assert report["revisions"] == {"baseline": first[:12], "candidate": second[:12]}
    assert report["notes"] == [{"code": "revisions", "values": report["revisions"]}]
    said = bench("compare", "{reg}/nearest", run)
    assert first[:12] in " ".join(said.out.split())


def test_two_dirty_states_are_two_revisions_and_neither_is_the_commit(bench, measured, repository):
    for day in (1, 2):
        (repository / "benches" / "mine.py").write_text(f"value = {10 + day}\n")
        bench("baseline", "capture", "{reg}", measured(day))
    revisions = {each["revision"] for each in captures(bench)}
    assert len(revisions) == 2
    assert all("-dirty." in revision for revision in revisions)
    assert "has a capture without changes" in chosen(bench, "nearest")


@pytest.mark.parametrize("how", ["capture", "promote"])
def test_a_dirty_capture_is_promoted_by_force_only(bench, measured, repository, how):
    (repository / "benches" / "mine.py").write_text("value = 2\n")
    words = ["baseline", "capture", "{reg}", measured(1)]
    if how == "promote":
        assert bench(*words).code == 0
        words = ["baseline", "promote", "{reg}"]
    else:
        words.append("--promote")
    refused = bench(*words)
    assert refused.code == 2
    assert "was not promoted" in refused.err
    assert "with changes" in refused.err
    assert json.loads(bench("baseline", "list", "{reg}", "--json").out)["baseline"] == {}
    assert bench(*words, "--force").code == 0


def test_a_run_whose_code_changed_on_the_way_has_no_revision(
    bench, make_record, make_run, make_point
):
    records = [
        make_record(
            make_point(benchmark="mine.Mine"),
            repeat,
            times={"save": 1.0},
            provenance={"code": {"generator": {"commit": commit, "dirty": False}}},
        )
        for repeat, commit in enumerate(("a" * 40, "b" * 40))
    ]
    run = make_run(records, num_repeats=2)
    done = bench("baseline", "capture", "{reg}", run.root, "--promote")
    assert "the code changed during the run: aaaaaaaaaaaa, bbbbbbbbbbbb" in done.err
    assert done.code == 2


def test_what_has_no_revision_is_unknown_and_used_by_name(bench, make_separate_run):
    for day in (1, 2):
        run = make_separate_run(day, provenance={"code": {}})
        assert bench("baseline", "capture", "{reg}", run.root).code == 0
    assert {each["revision"] for each in captures(bench)} == {"unknown"}
    assert chosen(bench, "unknown") == "run002"
    said = bench("compare", "{reg}/unknown", run.root)
    assert "code under test: unknown in both arms" in said.out


def test_what_has_neither_commit_nor_name_becomes_no_baseline(bench, make_separate_run, tmp_path):
    run = make_separate_run(1, provenance={"code": {}})
    done = bench("baseline", "capture", "{reg}", run.root, "--promote")
    assert (done.code, done.out) == (2, "")
    assert "has no commit" in done.err and "--label NAME --promote" in done.err
    assert not (tmp_path / "reg").exists()
    bench("baseline", "capture", "{reg}", run.root)
    done = bench("baseline", "promote", "{reg}", "--to", "latest", "--force")
    assert (done.code, "unknown/" in done.err and "has no commit" in done.err) == (2, True)
    assert json.loads(bench("baseline", "show", "{reg}", "--json").out)["promotions"] == []
    assert bench("baseline", "capture", "{reg}", run.root, "--label", "v1", "--promote").code == 0
    assert {p.split("/")[0] for p in baseline_of(bench).values()} == {"v1"}


def baseline_of(bench):
    return json.loads(bench("baseline", "show", "{reg}", "--json").out)["baseline"]


def test_without_a_repository_nearest_says_where_to_go(bench, measured, monkeypatch, tmp_path):
    bench("baseline", "capture", "{reg}", measured(1))
    monkeypatch.chdir(tmp_path)
    assert "go to a checkout of the benchmark's repository" in chosen(bench, "nearest")


@pytest.mark.parametrize("label", ["nearest", "HEAD", "latest", "previous"])
def test_a_label_is_no_name_with_a_meaning(bench, measured, label):
    done = bench("baseline", "capture", "{reg}", measured(1), "--label", label)
    assert (done.code, "cannot be a label" in done.err) == (2, True)
