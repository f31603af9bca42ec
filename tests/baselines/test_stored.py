"""Stored baselines: one file per point, raw samples inside, identity checked."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from orbax_bench_core.baselines import Registry, stored
from orbax_bench_core.baselines.capturing import capture_run
from orbax_bench_core.baselines.stored import load_baseline
from orbax_bench_core.errors import UserError
from orbax_bench_core.files import temporary_name
from orbax_bench_core.records import ErrorInfo, Run, RunDirectory


@pytest.fixture
def captured(make_run, make_record, make_point, tmp_path):
    """A run of two points and the folder of the baseline that was captured of it."""
    records = [
        make_record(make_point(options={"a": a}), repeat, times={"save": a + repeat})
        for a in (1, 2)
        for repeat in (0, 1)
    ]
    run = make_run(records, num_repeats=2)
    folder, left_out = stored.capture_into(run, str(tmp_path / "baselines"))
    assert left_out == {}
    return run, folder


def times(records):
    return sorted(sample.value for record in records for sample in record.samples)


def test_one_file_per_point_with_every_raw_sample_below_the_commit_of_the_code(captured):
    run, folder = captured
    assert {path.stem for path in folder.glob("*.json")} == {r.point_id for r in Run(run).records()}
    assert folder.parent.name == "c0ffee"
    for place in (folder, run.root):
        assert times(stored.load_baseline(str(place))) == [1.0, 2.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "spelling",
    ["{capture}", "{capture}.json", "{revision}", "{revision}.json", "{registry}", "{registry}/"],
)
def test_the_guides_spellings_are_understood(captured, spelling):
    _, folder = captured
    path = spelling.format(capture=folder, revision=folder.parent, registry=folder.parent.parent)
    assert len(stored.load_baseline(path)) == 4


def test_files_directly_below_a_revision_are_understood(captured):
    _, folder = captured
    flat = folder.parent.parent / "flat"
    folder.rename(flat)
    assert len(stored.load_baseline(f"{flat}.json")) == 4


def test_a_revision_means_the_newest_capture_of_each_point(
    captured, make_run, make_record, make_point
):
    _, folder = captured
    again = make_record(make_point(options={"a": 2}), times={"save": 9.0})
    stored.capture_into(make_run([again], folder="again"), str(folder.parent.parent))
    assert times(stored.load_baseline(str(folder.parent))) == [1.0, 2.0, 9.0]


def test_capturing_the_same_again_leaves_every_file_as_it_was_and_adds_none(captured):
    run, folder = captured
    registry = Path(folder.parent.parent)
    before = {path: path.read_bytes() for path in registry.rglob("*.json")}
    stored.capture_into(run, str(registry))
    after = {path: path.read_bytes() for path in registry.rglob("*.json")}
    assert before == after


@pytest.mark.parametrize("place", ["{revision}", "{revision}/{id}", "promotions"])
def test_capturing_again_removes_what_a_killed_capture_has_left(captured, tmp_path, place):
    run, folder = captured
    registry = tmp_path / "copy"  # in which this process has not written yet
    shutil.copytree(folder.parent.parent, registry)
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    name = temporary_name("a.json").replace(f"-{os.getpid()}-", f"-{ended.pid}-")
    left = registry / place.format(revision=folder.parent.name, id=folder.name) / name
    left.parent.mkdir(exist_ok=True)
    left.write_text("half")
    stored.capture_into(run, str(registry))
    assert not left.exists()


@pytest.mark.parametrize("place", ["{revision}", "promotions"])
def test_nothing_is_written_through_a_link_in_a_registry(captured, tmp_path, place):
    run, folder = captured
    elsewhere, registry = tmp_path / "elsewhere", tmp_path / "registry"
    elsewhere.mkdir()
    registry.mkdir()
    (registry / place.format(revision=folder.parent.name)).symlink_to(elsewhere)
    with pytest.raises(UserError, match=f"cannot write the baseline.*link.*{registry}"):
        stored.capture_into(run, str(registry))
        Registry(str(registry)).promote({"a": None}, [])
    assert list(elsewhere.iterdir()) == []


def test_several_revisions_have_to_be_told_apart(captured, make_run, make_record):
    _, folder = captured
    record = make_record(provenance={"code": {"suite": {"commit": "other"}}})
    stored.capture_into(make_run([record], folder="other run"), str(folder.parent.parent))
    with pytest.raises(UserError, match=r"none is promoted; name one of: .*/c0ffee, .*/other"):
        stored.load_baseline(str(folder.parent.parent))


def test_defect_23_a_failed_point_does_not_replace_a_good_baseline(
    captured, make_run, make_record, make_point
):
    _, folder = captured
    error = ErrorInfo(type="ValueError", message="no")
    failed = make_record(make_point(options={"a": 1}), status="failed", error=error)
    run = make_run([failed], folder="failed")
    _, left_out = stored.capture_into(run, str(folder.parent.parent))
    assert left_out == {failed.point_name: "a repeat did not pass: ValueError"}
    assert times(stored.load_baseline(str(folder.parent.parent))) == [1.0, 2.0, 2.0, 3.0]


def test_a_file_under_another_points_name_is_refused(captured):
    _, folder = captured
    first, second = sorted(folder.glob("*.json"))
    first.write_bytes(second.read_bytes())
    with pytest.raises(UserError, match="disagree on the point"):
        stored.load_baseline(str(folder))


def test_a_file_of_another_schema_version_is_refused(captured):
    _, folder = captured
    file = next(iter(folder.glob("*.json")))
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema_version": 6}))
    with pytest.raises(UserError, match="written by a newer orbax-bench"):
        stored.load_baseline(str(folder))


def test_a_capture_that_was_cut_short_does_not_count(captured):
    _, folder = captured
    folder.with_name(f"{folder.name}.json").unlink()
    with pytest.raises(UserError, match="holds no run and no baseline"):
        stored.load_baseline(str(folder.parent.parent))


def test_nothing_there_is_said_plainly(tmp_path):
    with pytest.raises(UserError, match="none does not exist; give a run directory, a registry"):
        stored.load_baseline(str(tmp_path / "none"))
    (tmp_path / "none").mkdir()
    with pytest.raises(UserError, match="holds no run and no baseline; give a run directory, or"):
        stored.load_baseline(str(tmp_path / "none"))
    with pytest.raises(UserError, match="s3://"):
        stored.load_baseline("s3://bucket/baseline")


@pytest.fixture
def pair(make_point):
    """Two arms that differ in one option."""
    return make_point(candidate=make_point(options={"use_ocdbt": False}))


@pytest.mark.parametrize("arm", ["baseline", "candidate"])
def test_an_arm_serves_and_is_captured_as_the_point_that_it_measured(
    registry, make_paired_run, pair, arm
):
    run = make_paired_run(0, pair=pair)
    found = stored.load_baseline(str(run.root), arm=arm)
    assert {(record.point_id, record.arm) for record in found} == {(pair.arm(arm).id, arm)}
    captured = capture_run(run, registry, arm=arm)
    assert [one.point_id for one in captured.capture.points] == [pair.arm(arm).id]
    assert {record.point.id for record in load_baseline(str(registry.root))} == {pair.arm(arm).id}


def test_a_captured_arm_still_knows_its_run_its_block_and_its_side(registry, make_paired_run, pair):
    capture_run(make_paired_run(0, pair=pair, blocks=3), registry)
    records = load_baseline(str(registry.root))
    assert {(record.run_id, record.arm) for record in records} == {("run000", "candidate")}
    assert sorted(record.block for record in records) == [0, 0, 1, 1, 2, 2]


def test_the_manifest_says_what_ran_and_on_what(registry, make_paired_run):
    capture = capture_run(make_paired_run(3), registry).capture
    assert (capture.run_id, capture.suite, capture.arm) == ("run003", "a suite", "candidate")
    assert capture.provenance["versions"] == {"jax": "0.10.2"}
    assert capture.provenance["storage"]["type"] == "ext4"
    assert capture.points[0].repeats == 10


def test_a_capture_is_filed_under_a_label_when_there_is_one(registry, make_separate_run):
    capture = capture_run(make_separate_run(0), registry, revision="v0.12.8").capture
    assert capture.reference.startswith("v0.12.8/")
    assert load_baseline(f"{registry.root}/v0.12.8")


@pytest.mark.parametrize("label", ["", "a/b", "..", ".hidden", "promotions", "v1.json", "a b"])
def test_a_label_that_cannot_be_a_folder_of_its_own_is_refused(registry, make_separate_run, label):
    capture = capture_run(make_separate_run(0), registry, revision="good").capture
    with pytest.raises(UserError, match="cannot be a label"):
        registry.add(capture.model_copy(update={"revision": label}), [])


def test_an_arm_with_a_failed_repeat_is_left_out(registry, make_paired_run, pair):
    run = make_paired_run(0, pair=pair)
    victim = next(record for record in Run(run).records() if record.arm == "candidate")
    error = ErrorInfo(type="ValueError", message="no")
    (run.root / "records" / pair.id / f"repeat_{victim.repeat}" / "host_0.json").unlink()
    failed = victim.model_copy(update={"status": "failed", "error": error})
    run.write_record(failed, replaces=run.seal(victim.point, victim.repeat))
    captured = capture_run(run, registry)
    assert captured.capture is None
    assert captured.left_out == {pair.name: "a repeat did not pass: ValueError"}
    assert capture_run(run, registry, arm="baseline").capture is not None


def test_a_run_that_lacks_a_repeat_is_left_out(registry, make_separate_run):
    run = make_separate_run(0)
    run.write_info(run.read_info().model_copy(update={"num_repeats": 7}))
    assert capture_run(run, registry).capture is None


def test_two_pairs_with_the_same_side_are_captured_once(
    registry, make_run, make_point, make_record
):
    candidate = make_point(options={"a": 3})
    pairs = [make_point(options={"a": a}, candidate=candidate, label=f"a={a}") for a in (1, 2)]
    records = [
        make_record(pair, 0, times={"save": 1.0}, arm="candidate", block=0) for pair in pairs
    ]
    captured = capture_run(make_run(records), registry)
    assert len(captured.capture.points) == 1
    assert captured.left_out == {"save_restore[a=2]": "another point of this run measured the same"}


def test_there_must_be_a_run(registry, tmp_path):
    with pytest.raises(UserError, match=r"no run\.json"):
        capture_run(RunDirectory(str(tmp_path)), registry)
