"""Finding runs: directories, directories of them, patterns and registries, each run once."""

import math

import pytest

from orbax_bench_core.baselines.capturing import capture_run
from orbax_bench_core.baselines.find import find_runs, past_log_ratios
from orbax_bench_core.baselines.store import Registry
from orbax_bench_core.baselines.stored import measured_records
from orbax_bench_core.errors import UserError
from orbax_bench_core.records import Run


@pytest.fixture
def ids():
    """Returns the ids of the runs at places."""
    return lambda *places: [run.run_id for run in find_runs(map(str, places))]


def test_runs_are_in_the_order_of_time(ids, make_separate_run):
    runs = [make_separate_run(day) for day in (2, 0, 1)]
    assert ids(*(run.root for run in runs)) == ["run000", "run001", "run002"]


@pytest.mark.parametrize("place", ["{folder}", "{folder}/", "{folder}/day*", "{folder}/day00[01]"])
def test_many_runs_are_named_by_their_folder_or_a_pattern(ids, make_separate_run, tmp_path, place):
    for day in (0, 1):
        make_separate_run(day)
    assert ids(place.format(folder=tmp_path)) == ["run000", "run001"]


def test_a_folder_whose_name_looks_like_a_pattern_is_itself(ids, make_separate_run):
    assert ids(make_separate_run(0, folder="run[0]").root) == ["run000"]


def test_a_run_that_is_named_twice_counts_once(ids, make_separate_run, tmp_path):
    run = make_separate_run(0)
    assert ids(run.root, tmp_path, run.root) == ["run000"]


def test_a_run_directory_stands_for_its_captures(make_separate_run, tmp_path):
    run, registry = make_separate_run(0), Registry(str(tmp_path / "registry"))
    capture_run(run, registry)
    (found,) = find_runs([str(registry.root), str(run.root)])
    assert found.place == str(run.root)


def test_both_arms_of_a_run_can_be_captured(ids, make_paired_run, tmp_path):
    run, registry = make_paired_run(0), Registry(str(tmp_path / "registry"))
    for arm in ("baseline", "candidate"):
        capture_run(run, registry, arm=arm)
    assert ids(registry.root) == ["run000", "run000"]


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("nothing", "nothing does not exist"),
        (".", "holds no run: give run directories"),
        ("nothing*", "no directory is called"),
        ("s3://bucket/runs", "local paths and gs:// only"),
    ],
)
def test_where_there_is_no_run_is_said(tmp_path, place, problem):
    with pytest.raises(UserError, match=problem):
        find_runs([place if "://" in place else str(tmp_path / place)])


def test_a_run_that_cannot_be_read_is_left_out_beside_others(make_paired_run, tmp_path):
    folder = make_paired_run(0).root.parent
    (folder / "torn").mkdir()
    (folder / "torn" / "run.json").write_text("{")
    with pytest.raises(UserError, match="not readable"):
        find_runs([str(folder)])
    for place in (str(folder), f"{folder}/*"):
        left_out = []
        (found,) = find_runs([place], left_out=left_out)
        assert found.run_id == "run000"
        (line,) = left_out
        assert line.startswith(f"{folder}/torn/run.json: not readable as schema version 3")
    with pytest.raises(UserError, match="not readable"):
        find_runs([str(folder / "torn")], left_out=left_out)


def test_of_several_runs_one_that_a_newer_release_has_written_is_left_out(
    make_paired_run, tmp_path
):
    run, newer = make_paired_run(0).root, tmp_path / "newer"
    newer.mkdir()
    (newer / "run.json").write_text('{"schema_version": 99, "run_id": "x"}')
    left_out = []
    (found,) = find_runs([str(run), str(newer)], left_out=left_out)
    assert found.run_id == "run000"
    (line,) = left_out
    assert line.startswith(f"{newer}/run.json: written by a newer orbax-bench (schema 99")
    with pytest.raises(UserError, match="newer orbax-bench"):
        find_runs([str(newer)], left_out=left_out)


@pytest.fixture
def capture_all(registry):
    """Captures runs, and returns what the past of the last one is for the point's saves."""

    def capture(runs, candidate, arm="candidate"):
        for run in runs:
            capture_run(run, registry)
        found = past_log_ratios(registry, measured_records(Run(candidate).records(), arm))
        return next(iter(found.values()), ())

    return capture


def test_each_run_is_held_against_the_one_before_it(capture_all, make_separate_run):
    runs = [make_separate_run(day, 2.0**day, sigma=0) for day in range(4)]
    found = capture_all(runs, make_separate_run(9))
    assert found == pytest.approx([math.log(2)] * 3)


def test_runs_count_in_the_order_of_measurement(capture_all, make_separate_run):
    runs = [make_separate_run(day, 2.0**day, sigma=0) for day in (2, 0, 1)]
    found = capture_all(runs, make_separate_run(9))
    assert found == pytest.approx([math.log(2)] * 2)


def test_the_run_that_is_judged_is_not_its_own_past(capture_all, make_separate_run):
    runs = [make_separate_run(day, sigma=0) for day in range(3)]
    assert len(capture_all(runs, runs[-1])) == 1


def test_a_run_that_was_captured_twice_counts_once(capture_all, make_separate_run):
    runs = [make_separate_run(day, sigma=0) for day in (0, 1)]
    assert len(capture_all([*runs, *runs], make_separate_run(9))) == 1


def test_both_arms_of_one_run_are_one_run(registry, make_paired_run):
    run = make_paired_run(0)
    for arm in ("baseline", "candidate"):
        capture_run(run, registry, arm=arm)
    past = past_log_ratios(
        registry, measured_records(Run(make_paired_run(1)).records(), "candidate")
    )
    assert set(past.values()) == {()}


def test_what_was_measured_on_another_machine_does_not_count(capture_all, make_separate_run):
    other = {"host": {"cpu": "Xeon", "cpu_count": 2}}
    runs = [make_separate_run(day, provenance=other if day == 1 else None) for day in range(4)]
    assert len(capture_all(runs, make_separate_run(9))) == 2


def test_other_points_have_no_past_here(capture_all, make_separate_run, make_point):
    runs = [make_separate_run(day) for day in range(3)]
    assert capture_all(runs, make_separate_run(9, point=make_point(options={"a": 1}))) == ()
