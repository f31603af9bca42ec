"""The last step of a run: what it adds to what is there, and the state that it tells."""

import json
import sys
from pathlib import Path

import pytest

from orbax_bench_core import engine
from orbax_bench_core.engine import retrying
from orbax_bench_core.publishing import Notifiers
from tests.support.disks import fill, small_disk
from tests.support.paired_runs import make_paired_run  # noqa: F401 - a fixture
from tests.support.verdicts import make_operation, make_report, make_verdicts  # noqa: F401 - fixtures
from tests.support.webhook import webhook  # noqa: F401 - a fixture


def test_what_is_complete_is_not_written_again(make_run, make_record):
    run = make_run([make_record(times={"save": 0.5})])
    engine.aggregate(str(run.root))
    page = Path(run.root, "report.html")
    before = page.stat().st_mtime_ns
    done = engine.finish(str(run.root), status="SUCCEEDED")
    assert (done.value, done.named["report"].place) == ("PASS", str(page))
    assert page.stat().st_mtime_ns == before
    assert "every point is complete" in Path(run.root, "ending.md").read_text()


def test_the_run_of_another_is_left_as_it_is_and_this_one_has_failed_and_is_told(
    make_run, make_record, webhook
):
    run = make_run([make_record(times={"save": 0.5})])
    run.claim("monday", go_on=True)
    notifiers = Notifiers.of(webhook.url, environment={})
    assert engine.finish(str(run.root), engine_run="monday", notifiers=notifiers).value == "PASS"
    # A later run of the suite, in a folder of its own, has told its state since.
    state = next(Path(run.root).parent.glob("notified-*.json"))
    known = json.loads(state.read_text())
    state.write_text(json.dumps(known | {"begun": "2026-06-01T00:00:00Z"}))
    before = {path: path.read_bytes() for path in Path(run.root).rglob("*") if path.is_file()}
    text = run.read_info().suite_text
    given = {"suite": text, "engine_run": "tuesday", "notifiers": notifiers}
    done = engine.finish(str(run.root), **given)
    assert done.value == "FAILED"
    assert b"the directory holds the run 'monday'" in done.named["ending"].content
    assert webhook.states == ["PASS", "FAILED"]
    assert before == {
        path: path.read_bytes() for path in Path(run.root).rglob("*") if path.is_file()
    }


def test_what_the_image_could_not_measure_is_told_by_name(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "flax", None)
    suite = {
        "suite_name": "s",
        "checkpoint_config": {"nnx": "models:make"},
        "benchmarks": [{"generator": "save_restore", "options": {}}],
    }
    engine.finish(str(tmp_path / "run"), suite=json.dumps(suite))
    assert "nnx: models:make needs flax" in (tmp_path / "run" / "ending.md").read_text()


def test_the_log_and_an_artifact_tell_the_submitter_how_the_run_ended(
    make_run, make_record, capsys
):
    run = make_run([make_record(times={"save": 0.5})])
    done = engine.finish(str(run.root))
    told = engine.RunEnding.in_log(capsys.readouterr().out)
    assert (told.state, told.reasons) == ("PASS", ("every point is complete",))
    assert told.html == Path(run.root, "report.html").read_bytes()
    of_artifact = engine.RunEnding.in_metadata(done.named["ending"].metadata)
    assert of_artifact == told.model_copy(update={"page": ""})


def test_records_that_no_report_has_seen_are_reported(make_run, make_record):
    run = make_run([make_record(times={"save": 0.5})])
    assert engine.finish(str(run.root)).value == "PASS"
    assert "save" in Path(run.root, "report.md").read_text()


def test_a_run_that_the_service_calls_failed_is_failed_also_where_nothing_is_lacking(
    make_run, make_record
):
    run = make_run([make_record(times={"save": 0.5})])
    assert engine.finish(str(run.root), status="RUNNING").value == "FAILED"
    ending = Path(run.root, "ending.md").read_text()
    assert "the step that puts the records together left nothing" in ending


def test_the_first_reason_of_a_failure_is_what_failed(make_paired_run):
    run = make_paired_run(0)
    engine.aggregate(str(run.root))
    assert engine.compare_baseline(str(run.root)).value == "PASS"
    assert engine.finish(str(run.root), status="FAILED").value == "FAILED"
    assert "# ✗ FAILED: a step failed after" in Path(run.root, "ending.md").read_text()


@pytest.mark.parametrize(("ratio", "state"), [(1.0, "PASS"), (2.0, "REGRESSION")])
def test_arms_that_nobody_judged_are_judged(make_paired_run, capsys, ratio, state):
    run = make_paired_run(0, ratio)
    assert engine.finish(str(run.root)).value == state
    told = engine.RunEnding.in_log(capsys.readouterr().out)
    assert told.html == Path(run.root, "verdicts.html").read_bytes()


def test_a_verdict_that_is_there_is_told_and_not_given_again(make_paired_run):
    run = make_paired_run(0)
    engine.aggregate(str(run.root))
    word = engine.compare_baseline(str(run.root)).value
    page = Path(run.root, "verdicts.html")
    before = page.stat().st_mtime_ns
    assert engine.finish(str(run.root), status="SUCCEEDED").value == word
    assert page.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("time", "saves take 1 % longer .*; loads regressed too"),
        ("failures", "8 of 20 first attempts of the candidate failed"),
    ],
)
def test_the_message_names_what_decided(
    make_operation, make_verdicts, make_report, tmp_path, endpoint, said
):
    operations = [make_operation(name, "REGRESSION") for name in ("save", "load")]
    reason = "" if endpoint == "time" else "8 of 20 first attempts of the candidate failed"
    report = make_report(make_verdicts("p", *operations, endpoint=endpoint, reason=reason))
    path = tmp_path / "verdicts.json"
    path.write_text(report.model_dump_json())
    with pytest.raises(engine.NotPassed, match=said):
        engine.enforce_verdict("REGRESSION", verdicts=str(path), allow_inconclusive=True)


def test_an_arm_that_lacks_an_operation_is_never_good_enough(
    make_operation, make_verdicts, make_report, tmp_path
):
    operation = make_operation("save", "INCONCLUSIVE")
    report = make_report(make_verdicts("p", operation, endpoint="missing", reason="no load"))
    path = tmp_path / "verdicts.json"
    path.write_text(report.model_dump_json())
    with pytest.raises(engine.NotPassed, match="no load"):
        engine.enforce_verdict("INCONCLUSIVE", verdicts=str(path), allow_inconclusive=True)


@pytest.fixture
def full_disk(tmp_path):
    """A disk that a test may fill."""
    with small_disk(tmp_path / "disk", "4m") as disk:
        yield disk


@pytest.mark.nightly
@pytest.mark.parametrize("paired", [False, True])
def test_people_are_told_once_though_the_report_has_no_room(
    full_disk, make_run, make_record, make_paired_run, webhook, monkeypatch, capfd, paired
):
    monkeypatch.setenv("ORBAX_BENCH_NOTIFY", webhook.url)
    monkeypatch.setattr(retrying, "WAITS_S", (0.0, 0.0, 0.0))
    folder = "disk/nightly/out"
    run = (
        make_paired_run(0, 2.0, folder=folder)
        if paired
        else make_run([make_record()], folder=folder)
    )
    ballast = fill(full_disk)
    with pytest.raises(OSError, match="No space left"):
        engine.finish(str(run.root), status="SUCCEEDED")
    assert webhook.states == ["REGRESSION" if paired else "PASS"]
    assert capfd.readouterr().out.count("there may be room again") == 3
    ballast.unlink()
    assert engine.finish(str(run.root), status="SUCCEEDED").value == webhook.states[0]
    assert Path(run.root, "report.html").exists()
