"""Captures: what is taken of a run, and what is left out."""

import pytest

from orbax_bench_core.baselines.capturing import capture_run
from orbax_bench_core.baselines.stored import load_baseline
from orbax_bench_core.errors import UserError
from orbax_bench_core.records import ErrorInfo, Run, RunDirectory


@pytest.fixture
def pair(make_point):
    """Two arms that differ in one option."""
    return make_point(candidate=make_point(options={"use_ocdbt": False}))


@pytest.mark.parametrize("arm", ["baseline", "candidate"])
def test_an_arm_is_captured_as_the_point_that_it_measured(registry, make_paired_run, pair, arm):
    captured = capture_run(make_paired_run(0, pair=pair), registry, arm=arm)
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
