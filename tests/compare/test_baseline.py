"""Stored baselines: one file per point, raw samples inside, identity checked."""

import json

import pytest

from orbax_bench_core.compare import baseline
from orbax_bench_core.config.errors import SuiteError
from orbax_bench_core.results.record import ErrorInfo


@pytest.fixture
def captured(make_run, make_record, make_point, tmp_path):
    """A run of two points and the folder of the baseline that was captured of it."""
    records = [
        make_record(make_point(options={"a": a}), repeat, times={"save": a + repeat})
        for a in (1, 2)
        for repeat in (0, 1)
    ]
    run = make_run(records, num_repeats=2)
    folder, left_out = baseline.capture(run, str(tmp_path / "baselines"))
    assert left_out == []
    return run, folder


def times(records):
    return sorted(sample.value for record in records for sample in record.samples)


def test_one_file_per_point_with_every_raw_sample(captured):
    run, folder = captured
    assert {path.stem for path in folder.glob("*.json")} == {r.point_id for r in run.records()}
    assert times(baseline.load(str(folder))) == [1.0, 2.0, 2.0, 3.0]


@pytest.mark.parametrize("spelling", ["{folder}", "{folder}.json", "{parent}"])
def test_the_guides_spellings_are_understood(captured, spelling):
    _, folder = captured
    path = spelling.format(folder=folder, parent=folder.parent)
    assert len(baseline.load(path)) == 4


def test_a_run_directory_serves_as_a_baseline(captured):
    run, _ = captured
    assert times(baseline.load(str(run.root))) == [1.0, 2.0, 2.0, 3.0]


def test_several_revisions_have_to_be_told_apart(captured):
    _, folder = captured
    (folder.parent / "other").mkdir()
    with pytest.raises(SuiteError, match=r"several baselines; name one of: .*other"):
        baseline.load(str(folder.parent))


def test_defect_23_a_failed_point_does_not_replace_a_good_baseline(
    captured, make_run, make_record, make_point
):
    _, folder = captured
    before = {path.name: path.read_bytes() for path in folder.glob("*.json")}
    error = ErrorInfo(type="ValueError", message="no")
    failed = make_record(make_point(options={"a": 1}), status="failed", error=error)
    run = make_run([failed], folder="failed")
    _, left_out = baseline.capture(run, str(folder.parent))
    assert left_out == [failed.point_name]
    assert {path.name: path.read_bytes() for path in folder.glob("*.json")} == before


def test_a_file_under_another_points_name_is_refused(captured):
    _, folder = captured
    first, second = sorted(folder.glob("*.json"))
    first.write_bytes(second.read_bytes())
    with pytest.raises(SuiteError, match="disagree on the point"):
        baseline.load(str(folder))


def test_a_file_of_another_schema_version_is_refused(captured):
    _, folder = captured
    file = next(iter(folder.glob("*.json")))
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema_version": 2}))
    with pytest.raises(SuiteError, match="not a baseline of schema version 1: schema_version"):
        baseline.load(str(folder))


def test_nothing_there_is_said_plainly(tmp_path):
    with pytest.raises(SuiteError, match="holds no baseline; capture one"):
        baseline.load(str(tmp_path / "none"))


def test_a_path_that_orbax_cannot_honour_is_refused():
    with pytest.raises(SuiteError, match="s3://"):
        baseline.load("s3://bucket/baseline")
