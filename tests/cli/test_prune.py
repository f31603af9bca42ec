"""`orbax-bench prune`: what is old and unused goes, and nothing else."""

import datetime
import json
from pathlib import Path

import pytest

from orbax_bench_core.analysis.verdicts import compare_stored
from orbax_bench_core.baselines import Registry, capture_run, promote_capture
from orbax_bench_core.exports.notifications import News, claim
from orbax_bench_core.exports.site import write_site
from orbax_bench_core.files import names_in, place, write_atomically
from orbax_bench_core.leases import held
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps import publish, publish_verdicts
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
    assert "2 would be removed" in shown.out
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
    code, said = prune(nightly, "--keep-last", "1", "--delete")
    gone = {(each["what"], each["suite"]) for each in said["old"]}
    assert (code, gone) == (0, {("run", "retired"), ("state", "long gone")})
    kept = sorted(path.name[:15] for path in nightly.glob("notified-*"))
    assert kept == ["notified-a-suit", "notified-retire"]


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


def test_nothing_is_removed_through_a_link(prune, orbax_bench, night, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("mine")
    run = night(300)
    night(1)
    Path(run.root / "notes").symlink_to(elsewhere)
    code, _ = prune(tmp_path / "nightly", "--keep-last", "1", "--delete")
    assert code == 0
    assert not run.exists()
    assert (elsewhere / "mine").read_text() == "mine"


def test_one_that_was_removed_in_part_is_found_again(prune, night, tmp_path, monkeypatch):
    run = night(300)
    publish(run)
    night(1)
    arguments = (tmp_path / "nightly", "--keep-last", "1", "--delete")
    with monkeypatch.context() as patched:
        patched.setattr(
            "orbax_bench_core.steps.pruning.remove_tree",
            lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error")),
        )
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
