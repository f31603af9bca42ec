"""`orbax-bench prune`: what is old and unused goes, and nothing else."""

import datetime
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from orbax_bench_core.analysis.verdicts import compare_stored
from orbax_bench_core.baselines import Registry, capture_run, promote_capture
from orbax_bench_core.exports.last_states import claim
from orbax_bench_core.exports.news import News
from orbax_bench_core.exports.site import write_site
from orbax_bench_core.files import names_in, place, write_atomically
from orbax_bench_core.leases import held
from orbax_bench_core.publishing import publish, publish_verdicts
from orbax_bench_core.records import RunDirectory
from tests.support.bucket import served_bucket  # noqa: F401 - a fixture
from tests.support.paired_runs import make_paired_run, make_separate_run  # noqa: F401 - fixtures

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


@pytest.fixture
def night(make_run, make_record):
    """Makes the run of a night so many days ago."""

    def make(days, *, suite="a suite", folder=None):
        folder = folder or f"nightly/{suite.replace(' ', '-')}-{days:03}"
        run = make_run([make_record(run_id=f"{suite} {days}")], folder=folder)
        info = run.read_info()
        changed = {"run_id": f"{suite} {days}", "created_at": NOW - days * DAY}
        run.write_info(info.model_copy(update={**changed, "suite_name": suite}))
        return run

    return make


@pytest.fixture
def prune(orbax_bench):
    def ask(*arguments):
        outcome = orbax_bench("prune", *arguments, "--json")
        return outcome.code, json.loads(outcome.out)

    return ask


def names(found):
    return [Path(each["place"]).name for each in found]


def test_what_is_old_and_not_among_the_newest_goes(prune, orbax_bench, night, tmp_path):
    for days in (1, 50, 100, 200, 300):
        night(days)
    nightly = tmp_path / "nightly"
    code, said = prune(nightly, "--keep", "90d", "--keep-last", "3")
    assert (code, names(said["old"])) == (0, ["a-suite-300", "a-suite-200"]), "100 is the third"
    assert (said["deleted"], said["recent"], said["in_use"]) == (False, 3, [])
    assert all(each["size"] > 0 for each in said["old"])
    assert len(list(nightly.iterdir())) == 5, "without --delete nothing is removed"
    shown = orbax_bench("prune", nightly, "--keep-last", "3")
    assert re.search(r"2 would be removed, [\d.]+ (B|KiB|MiB); ", shown.out)
    assert "nothing is removed without --delete" in shown.out
    code, said = prune(nightly, "--keep", "90d", "--keep-last", "3", "--delete")
    assert (code, said["deleted"], names(said["old"])) == (0, True, ["a-suite-300", "a-suite-200"])
    left = sorted(path.name for path in nightly.iterdir())
    assert left == ["a-suite-001", "a-suite-050", "a-suite-100"]


def test_the_newest_of_each_suite_stay_however_old(prune, night, tmp_path):
    for days in (200, 300):
        night(days)
        night(days, suite="rare")
    code, said = prune(tmp_path / "nightly", "--keep-last", "1")
    assert (code, names(said["old"])) == (0, ["a-suite-300", "rare-300"])


def test_what_a_run_that_stays_was_compared_with_stays(prune, make_separate_run, tmp_path):
    """And what that one was compared with, for its lineage would end in nothing."""
    runs = [make_separate_run(day) for day in range(4)]
    for before, after in ((0, 1), (1, 3)):
        publish(runs[after])
        verdicts = compare_stored(str(runs[before].root), str(runs[after].root))
        publish_verdicts(runs[after], verdicts)
    code, said = prune(tmp_path, "--keep", "1d", "--keep-last", "1")
    assert code == 0
    assert [each["place"] for each in said["old"]] == [str(runs[2].root)]
    why = {each["place"]: each["why"] for each in said["in_use"]}
    assert why == {
        str(runs[0].root): f"baseline of {runs[1].root}, which stays",
        str(runs[1].root): f"baseline of {runs[3].root}, which stays",
    }


@pytest.fixture
def registry(make_separate_run, tmp_path):
    """Five captures; the third is the baseline, and the second was."""
    registry = Registry(str(tmp_path / "baselines"))
    for day in range(5):
        capture_run(make_separate_run(day), registry, revision=f"v{day}")
    promote_capture(registry, "v1")
    promote_capture(registry, "v2")
    return registry


def test_a_capture_that_is_the_baseline_or_was_before_stays(
    prune, orbax_bench, registry, make_separate_run
):
    arguments = (registry.root, "--keep", "1d", "--keep-last", "1")
    code, said = prune(*arguments, "--delete")
    assert code == 0
    revisions = [Path(each["place"]).parent.name for each in said["old"]]
    assert revisions == ["v0", "v3"], "v4 is the newest"
    why = [each["why"] for each in said["in_use"]]
    assert why == ["the baseline before the last promotion, of 1 point", "the baseline, of 1 point"]
    assert [capture.revision for capture in registry.captures()] == ["v1", "v2", "v4"]
    compared = orbax_bench("compare", registry.root, make_separate_run(6).root)
    assert compared.code != 2, compared.err
    back = orbax_bench("baseline", "promote", registry.root, "--to", "previous")
    assert (back.code, back.err) == (0, "")
    assert prune(*arguments)[1]["old"] == []


def test_a_capture_that_a_run_was_compared_with_stays(prune, registry, make_separate_run, tmp_path):
    last = make_separate_run(9)
    publish(last)
    baseline = f"{registry.root}/{registry.captures()[0].reference}"
    publish_verdicts(last, compare_stored(baseline, str(last.root)))
    code, said = prune(registry.root, tmp_path, "--keep", "1d", "--keep-last", "1")
    assert code == 0
    assert f"baseline of {last.root}, which stays" in [each["why"] for each in said["in_use"]]
    assert baseline not in [each["place"] for each in said["old"]]


def test_a_run_that_goes_on_stays(prune, night, tmp_path):
    run = night(300)
    night(1)
    with held(run.root, "run", command="orbax-bench run", say=print):
        code, said = prune(tmp_path / "nightly", "--keep-last", "1", "--delete")
    assert (code, said["old"]) == (0, [])
    assert said["in_use"][0]["why"].startswith("measured into by process ")
    assert run.exists()


def test_what_is_excepted_stays(prune, night, tmp_path):
    run = night(300)
    night(1)
    arguments = (tmp_path / "nightly", "--keep-last", "1", "--except")
    assert prune(*arguments, run.root)[1]["old"] == []
    assert prune(*arguments, tmp_path / "nightly")[1]["old"] == []
    assert names(prune(*arguments, tmp_path / "other")[1]["old"]) == ["a-suite-300"]


def test_the_state_of_a_suite_goes_with_its_last_run(prune, night, tmp_path):
    nightly = tmp_path / "nightly"
    night(200)
    night(300, suite="retired")
    night(301, suite="retired")
    for suite, days in (("a suite", 200), ("retired", 300), ("long gone", 400)):
        news = News(
            suite=suite, state="PASS", run_id="r", directory="d", begun=NOW - days * DAY, lines=()
        )
        claim(place(str(nightly)), news, NOW).note(delivered=True)
        accepted = {
            "suite": suite,
            "suite_identity": "s",
            "baseline": {},
            "run_id": "r",
            "accepted_by": "ada",
            "accepted_at": (NOW - days * DAY).isoformat(),
            "reason": "known",
            "times": [
                {"point_id": "i", "point": "p", "operation": "save", "ratio": 1.3, "most": 1.4}
            ],
        }
        (nightly / f"accepted-{suite}.json").write_text(json.dumps(accepted))
    code, said = prune(nightly, "--keep-last", "1", "--delete")
    gone = {(each["what"], each["suite"]) for each in said["old"]}
    assert (code, gone) == (0, {("run", "retired"), ("state", "long gone")})
    kept = sorted(path.name[:15] for path in nightly.glob("notified-*"))
    assert kept == ["notified-a-suit", "notified-retire"]
    kept = sorted(path.name for path in nightly.glob("accepted-*"))
    assert kept == ["accepted-a suite.json", "accepted-retired.json"]


def test_the_morning_page_no_longer_names_what_is_gone(prune, night, tmp_path):
    nightly = tmp_path / "nightly"
    for days in (1, 300):
        publish(night(days))
    write_site([str(nightly)], str(nightly))
    assert "a-suite-300" in (nightly / "index.html").read_text()
    code, said = prune(nightly, "--keep-last", "1", "--delete")
    assert [each["why"] for each in said["failed"]] == []
    assert (code, said["unread"]) == (0, [])
    page = (nightly / "index.html").read_text()
    assert "a-suite-300" not in page
    assert "a-suite-001" in page


def test_a_run_that_cannot_be_read_stays_and_is_named(orbax_bench, night, tmp_path):
    run = night(300)
    night(1)
    (run.root / "run.json").write_text("{")
    outcome = orbax_bench("prune", tmp_path / "nightly", "--keep-last", "1", "--delete")
    assert outcome.code == 1
    assert "a-suite-300/run.json" in outcome.err
    assert "it stays" in outcome.err
    assert (run.root / "run.json").exists()


def prune_twice(prune, *arguments):
    """Asks what would go and removes it: both say the same, which is returned."""
    before = prune(*arguments)[1]
    code, after = prune(*arguments, "--delete")
    for name in ("old", "in_use", "unread"):
        assert before[name] == after[name]
    return code, after


def test_a_run_that_holds_another_run_stays(prune, night, tmp_path):
    """As `run -o nightly`, and later `run -o nightly/n1`: it all went, and one was named."""
    outer = night(300, folder="nightly")
    young, running = night(1, folder="nightly/n1"), night(200, folder="nightly/sub/n2")
    with held(running.root, "run", command="orbax-bench run", say=print):
        code, said = prune_twice(prune, tmp_path / "nightly", "--keep", "1d", "--keep-last", "1")
    assert (code, said["old"]) == (0, [])
    why = {each["place"]: each["why"] for each in said["in_use"]}
    assert why[str(outer.root)] == "it holds another run, n1"
    assert why[str(running.root)].startswith("measured into by process ")
    assert all(run.exists() for run in (outer, young, running))


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        ("deep/er/in/it/run.json", "it holds another run, deep/er/in/it"),
        ("logs/mine/run.json", "it holds another run, logs/mine"),
        ("save_restore_0123456789ab/repeat_0/run.json", "it holds another run, save_restore_"),
        ("n1/leases/run.1.json", "it holds a lease, n1/leases/run.1.json"),
        ("kept/v1/20260102T030405Z-0123abcd.json", "it holds a capture, kept/v1/2026"),
    ],
)
def test_a_run_stays_that_holds_what_others_need(prune, night, tmp_path, inside, why):
    run = night(300)
    night(1)
    (run.root / inside).parent.mkdir(parents=True)
    (run.root / inside).write_text("{")
    code, said = prune_twice(prune, tmp_path / "nightly", "--keep-last", "1")
    assert (code, said["old"]) == (0, [])
    assert said["in_use"][0]["why"].startswith(why)
    assert (run.root / inside).exists()


def test_what_people_put_into_a_run_directory_keeps_it_and_is_named(prune, orbax_bench, night):
    run = night(300)
    publish(run)
    own = ("notes.txt", "records/mine.txt", "verdicts/mine.txt", "logs/train.log", "photos/a.jpg")
    for name in own:
        (run.root / name).parent.mkdir(exist_ok=True)
        (run.root / name).write_text("mine")
    (run.root / "empty").mkdir()
    night(1)
    nightly = run.root.parent
    shown = orbax_bench("prune", nightly, "--keep-last", "1")
    assert "its folder stays, with what others have put there: empty, logs/train.log, " in shown.out
    code, said = prune_twice(prune, nightly, "--keep-last", "1")
    assert (code, names(said["old"])) == (0, ["a-suite-300"])
    assert said["old"][0]["others"] == sorted([*own, "empty"])
    left = {str(path.relative_to(run.root)) for path in Path(run.root).rglob("*")}
    assert left == {*own, *(str(Path(name).parent) for name in own), "empty"} - {"."}


def test_nothing_is_removed_through_a_link(prune, night, tmp_path):
    elsewhere = night(300, folder="elsewhere/n0").root
    (elsewhere / "logs").mkdir()
    (elsewhere / "logs" / "worker_1_devices.log").write_text("mine")
    kept = sorted(Path(elsewhere.parent).rglob("*"))
    run = night(301)
    for name in ("logs", "notes"):
        Path(run.root / name).symlink_to(elsewhere / "logs")
    Path(run.root / "metrics.json").symlink_to(elsewhere / "run.json")
    data = run.root / "save_restore_0123456789ab" / "repeat_0"
    data.mkdir(parents=True)
    Path(data / "made-by-a-library").symlink_to(elsewhere)
    night(1)
    nightly = Path(run.root).parent
    (nightly / "run-behind").symlink_to(elsewhere)
    (nightly / "folder-behind").symlink_to(elsewhere.parent)
    (nightly / "latest").symlink_to("a-suite-301")
    code, said = prune_twice(prune, nightly, "--keep-last", "1")
    assert (code, [each["place"] for each in said["old"]]) == (0, [str(run.root)])
    assert said["old"][0]["others"] == ["logs", "metrics.json", "notes"]
    (why,) = {each["why"] for each in said["in_use"]}
    assert why.endswith("is a link, behind which nothing is removed")
    assert sorted(Path(elsewhere.parent).rglob("*")) == kept
    assert sorted(path.name for path in Path(run.root).iterdir()) == said["old"][0]["others"]


def test_a_folder_that_is_named_may_be_a_link(prune, night, tmp_path):
    night(300)
    night(1)
    (tmp_path / "link").symlink_to(tmp_path / "nightly")
    code, said = prune_twice(prune, tmp_path / "link", "--keep-last", "1")
    assert (code, names(said["old"])) == (0, ["a-suite-300"])
    assert len(list((tmp_path / "nightly").iterdir())) == 1


@pytest.mark.parametrize("content", ["", "{", '{"owner": "run", "of": "a newer release"}'])
def test_a_torn_lease_protects(prune, night, tmp_path, content):
    run = night(300)
    night(1)
    write_atomically(run.root / "leases" / "run.2.json", content.encode())
    code, said = prune_twice(prune, tmp_path / "nightly", "--keep-last", "1")
    assert (code, said["old"]) == (0, [])
    assert "leases/run.2.json, which cannot be read: remove it" in said["in_use"][0]["why"]


@pytest.mark.parametrize("file", ["run.json", "records/*/repeat_0/host_0.json"])
def test_what_a_newer_release_has_measured_stays(prune, night, tmp_path, file):
    run = night(300)
    night(1)
    (path,) = run.root.glob(file)
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": 99}))
    code, said = prune_twice(prune, tmp_path / "nightly", "--keep-last", "1")
    assert said["old"] == []
    stays = said["unread"] if code else [each["why"] for each in said["in_use"]]
    assert f"{path}: written by a newer orbax-bench (schema 99" in stays[0]
    assert (code == 1) == (file == "run.json")


def damage(run, what):
    """Has the lineage of a run say nothing of what it was compared with."""
    file = run.root / "lineage.json"
    if what == "missing":
        file.unlink()
    elif what == "newer":
        file.write_text(json.dumps({**json.loads(file.read_text()), "schema_version": 99}))
    elif what == "torn":
        file.write_text(file.read_text()[:-20])
    else:  # written again by a report, which knows of no baseline
        file.unlink()
        publish(run)


@pytest.fixture
def compared(make_separate_run, tmp_path):
    """Three runs; the first one is the baseline of the last one."""
    runs = [make_separate_run(day, folder=f"nightly/n{day}") for day in range(3)]
    publish(runs[2])
    verdicts = compare_stored(str(runs[0].root), str(runs[2].root))
    publish_verdicts(runs[2], verdicts)
    return runs


KEEP_ONE = ("--keep", "1d", "--keep-last", "1")


@pytest.mark.parametrize("what", ["torn", "newer", "missing", "reported again"])
def test_lineage_that_cannot_be_read_protects_the_baseline(prune, compared, tmp_path, what):
    damage(compared[2], what)
    code, said = prune_twice(prune, tmp_path / "nightly", *KEEP_ONE)
    assert (code, names(said["old"])) == (0, ["n1"])
    assert [each["why"] for each in said["in_use"]] == [
        f"baseline of {compared[2].root}, which stays"
    ]


@pytest.mark.parametrize("what", ["torn", "newer", "missing"])
def test_where_nothing_says_what_a_run_was_compared_with_nothing_goes(
    prune, orbax_bench, compared, tmp_path, what
):
    damage(compared[2], what)
    verdicts = compared[2].root / "verdicts.json"
    verdicts.write_text("{")
    code, said = prune_twice(prune, tmp_path / "nightly", *KEEP_ONE)
    assert (code, said["old"]) == (1, [])
    assert {each["why"] for each in said["in_use"]} == {
        f"perhaps the baseline of {compared[2].root}, which stays"
    }
    assert "what it was compared with is unknown" in said["unread"][0]
    verdicts.unlink()
    assert orbax_bench("report", compared[2].root).code == 0
    assert names(prune(tmp_path / "nightly", *KEEP_ONE)[1]["old"]) == ["n0", "n1"]


def test_a_run_that_cannot_be_read_protects_its_baseline(prune, compared, tmp_path):
    (compared[2].root / "run.json").write_text("{")
    code, said = prune_twice(prune, tmp_path / "nightly", *KEEP_ONE)
    assert (code, said["old"]) == (1, [])
    assert [names([each]) for each in said["in_use"]] == [["n0"]], "n1 is the newest by now"


@pytest.mark.parametrize("other", ["nightly/first", "moved/n0"])
def test_a_baseline_that_was_moved_stays(prune, compared, tmp_path, other):
    """By its name, or by its records."""
    if other == "nightly/first":
        (tmp_path / "nightly" / "n0").rename(tmp_path / other)
    else:
        (tmp_path / "nightly").rename(tmp_path / "moved")
    code, said = prune_twice(prune, (tmp_path / other).parent, *KEEP_ONE)
    assert (code, names(said["old"])) == (0, ["n1"])
    assert names(said["in_use"]) == [Path(other).name]


@pytest.mark.parametrize("left", ["no records", "a warm-up"])
def test_what_was_removed_in_part_goes_also_where_a_baseline_was_moved(
    prune, compared, tmp_path, left
):
    (tmp_path / "nightly" / "n0").rename(tmp_path / "nightly" / "first")
    records = tmp_path / "nightly" / "n1" / "records"
    if left == "a warm-up":
        (kept,) = records.glob("*/repeat_0")
        kept.rename(kept.with_name("warmup_0"))
        for repeat in records.glob("*/repeat_*"):
            shutil.rmtree(repeat)
    else:
        shutil.rmtree(records)
    code, said = prune_twice(prune, tmp_path / "nightly", *KEEP_ONE)
    assert (code, names(said["old"]), names(said["in_use"])) == (0, ["n1"], ["first"])


def test_the_baseline_before_a_rotation_of_names_stays(prune, compared, tmp_path):
    nightly = tmp_path / "nightly"
    (nightly / "n0").rename(nightly / "n-1")
    (nightly / "n1").rename(nightly / "n0")
    _, said = prune_twice(prune, nightly, *KEEP_ONE)
    assert names(said["in_use"]) == ["n-1", "n0"]


def test_a_capture_leaves_what_people_put_into_its_folder(prune, registry):
    capture = registry.captures()[0]
    mine = registry.root / capture.reference / "mine.txt"
    mine.write_text("mine")
    code, said = prune_twice(prune, registry.root, *KEEP_ONE)
    assert (code, said["old"][0]["others"]) == (0, ["mine.txt"])
    assert [path.name for path in mine.parent.iterdir()] == ["mine.txt"]


def test_one_that_was_removed_in_part_is_found_again(prune, night, tmp_path, monkeypatch):
    run = night(300)
    publish(run)
    night(1)
    arguments = (tmp_path / "nightly", "--keep-last", "1", "--delete")
    unlink = os.unlink

    def fails(path, **given):
        if path == "summary.csv":
            raise OSError(5, "Input/output error")
        unlink(path, **given)

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", fails)
        code, said = prune(*arguments)
    assert (code, [each["why"] for each in said["failed"]]) == (1, ["Input/output error"])
    assert run.exists()
    assert prune(*arguments)[0] == 0
    assert not run.root.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--keep", "3 months"], "expected a time such as 90m, 26h, 8d or 12w"),
        (["--keep", "999999w"], "at most a century"),
        (["--keep-last", "0"], "--keep-last"),
    ],
)
def test_what_cannot_be_meant_is_refused(orbax_bench, night, tmp_path, arguments, said):
    night(1)
    outcome = orbax_bench("prune", tmp_path / "nightly", *arguments)
    assert outcome.code == 2
    assert said in outcome.err


def test_a_folder_of_others_is_refused(orbax_bench, tmp_path):
    (tmp_path / "photos").mkdir()
    outcome = orbax_bench("prune", tmp_path / "photos", "--delete")
    assert (outcome.code, outcome.out) == (2, "")
    assert "holds neither runs nor captures" in outcome.err
    assert "is no directory" in orbax_bench("prune", tmp_path / "none").err


@pytest.mark.slow
def test_runs_in_a_bucket_go_too(prune, night, served_bucket):
    for name, days in (("old", 300), ("new", 1)):
        run = night(days)
        for file in (file for file in Path(run.root).rglob("*") if file.is_file()):
            target = f"{served_bucket}/nightly/{name}/{file.relative_to(run.root)}"
            write_atomically(place(target), file.read_bytes())
    nightly = f"{served_bucket}/nightly"
    code, said = prune(nightly, "--keep", "1d", "--keep-last", "1", "--delete")
    assert (code, names(said["old"])) == (0, ["old"])
    assert RunDirectory(f"{nightly}/new").exists()
    assert not RunDirectory(f"{nightly}/old").exists()
    assert names_in(place(f"{nightly}/old")) == []
