"""Finding runs: directories, directories of them, patterns and registries, each run once."""

import math

import pytest

from orbax_bench_core.baselines import load_baseline, resolve_baseline
from orbax_bench_core.baselines.captures import Promotion
from orbax_bench_core.baselines.capturing import capture_run, find_capture, promote_capture
from orbax_bench_core.baselines.find import find_runs, past_log_ratios
from orbax_bench_core.baselines.store import Registry
from orbax_bench_core.baselines.stored import measured_records
from orbax_bench_core.errors import UserError
from orbax_bench_core.files import write_atomically
from orbax_bench_core.records import Run


@pytest.fixture
def ids():
    """Returns the ids of the runs at places."""
    return lambda *places: [run.run_id for run in find_runs(map(str, places))]


def test_runs_are_in_the_order_of_time(ids, make_separate_run):
    runs = [make_separate_run(day) for day in (2, 0, 1)]
    assert ids(*(run.root for run in runs)) == ["run000", "run001", "run002"]


def test_a_folder_whose_name_looks_like_a_pattern_is_itself(ids, make_separate_run):
    assert ids(make_separate_run(0, folder="run[0]").root) == ["run000"]


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
        assert line.startswith(f"{folder}/torn/run.json: not readable as schema version 5")
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


def test_each_run_is_held_against_the_one_measured_before_it_and_counts_once(
    capture_all, make_separate_run
):
    runs = [make_separate_run(day, 2.0**day, sigma=0) for day in (2, 0, 3, 1)]
    found = capture_all([*runs, *runs], make_separate_run(9))
    assert found == pytest.approx([math.log(2)] * 3)


def test_the_run_that_is_judged_is_not_its_own_past(capture_all, make_separate_run):
    runs = [make_separate_run(day, sigma=0) for day in range(3)]
    assert len(capture_all(runs, runs[-1])) == 1


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


@pytest.fixture
def captures(registry, make_separate_run):
    """Three captures of the same point: `old` twice, then `new`."""
    for day, revision in enumerate(["old", "old", "new"]):
        capture_run(make_separate_run(day), registry, revision=revision)
    found = registry.captures()
    # Within one second ids sort by chance, and a prefix of the date would be all of them.
    assert [capture.run_id for capture in found] == ["run000", "run001", "run002"]
    return found


def test_what_is_promoted_is_the_baseline_and_says_what_it_replaces(registry, captures):
    assert set(promote_capture(registry, captures[0].id).replaced.values()) == {None}
    assert {record.run_id for record in load_baseline(str(registry.root))} == {"run000"}
    point_id = captures[0].points[0].point_id
    assert promote_capture(registry, "new").replaced == {point_id: captures[0].reference}


def test_previous_undoes_and_undoes_that_again(registry, captures):
    promote_capture(registry, captures[0].id)
    promote_capture(registry, "new")
    states = []
    for _ in range(2):
        promote_capture(registry, "previous")
        states.append(set(registry.current().values()))
    assert states == [{captures[0].reference}, {captures[2].reference}]


def test_undoing_the_first_promotion_leaves_no_baseline(registry, captures):
    promote_capture(registry, "latest")
    promote_capture(registry, "previous")
    assert registry.current() == {}


def test_two_that_say_the_same_at_once_are_one_promotion(registry, captures, monkeypatch):
    """A command has read the promotions before it promotes; another may write one meanwhile."""

    def after_another(points, log, *, note):
        first = type(registry).promote(registry, points, registry.promotions())
        made = type(registry).promote(registry, points, log, note=note)
        assert made == first
        return made

    monkeypatch.setattr(registry, "promote", after_another)
    found = promote_capture(registry, captures[0].id)
    assert registry.promotions() == [found.promotion]


def test_nothing_that_was_promoted_is_ever_lost(registry, captures):
    names = [captures[0].id, captures[1].id, "new", "previous"]
    for name in names:
        promote_capture(registry, name, note=name)
    assert [one.note for one in registry.promotions()] == names


def test_a_promotion_can_be_of_some_points_only(registry, make_run, make_record, make_point):
    points = [make_point(options={"a": a}) for a in (1, 2)]
    run = make_run([make_record(point, times={"save": 1.0}) for point in points])
    capture = capture_run(run, registry).capture
    promote_capture(registry, "latest", points=[points[1].id[:6]])
    assert registry.current() == {points[1].id: capture.reference}


def test_two_promotions_of_one_moment_both_stay_and_the_one_that_lost_is_told(
    registry, captures, monkeypatch
):
    point_id = captures[0].points[0].point_id
    other = Promotion(
        number=1,
        id="zzzzzzzz",
        promoted_at=captures[0].captured_at,
        points={point_id: captures[1].reference},
        by={"user": "other"},
    )

    def at_the_same_moment(points, log, *, note):
        made = type(registry).promote(registry, points, log, note=note)
        path = registry.root / "promotions" / f"000001-{other.id}.json"
        write_atomically(path, other.model_dump_json().encode())
        return made

    monkeypatch.setattr(registry, "promote", at_the_same_moment)
    assert promote_capture(registry, captures[0].id).overtaken == other
    assert len(registry.promotions()) == 2
    assert registry.current() == {point_id: captures[1].reference}


@pytest.mark.parametrize(("name", "index"), [("latest", 2), ("old", 1), ("new", 2), ("ne", 2)])
def test_a_capture_is_found_by_revision(captures, name, index):
    assert find_capture(captures, name) == captures[index]


def test_a_capture_is_found_by_its_id_its_beginning_and_its_reference(captures):
    names = [captures[1].id, captures[1].id[:-1], captures[1].reference]
    assert {find_capture(captures, name).id for name in names} == {captures[1].id}


@pytest.mark.parametrize(
    ("name", "problem"),
    [("nope", "no capture is called 'nope'"), ("20", "could be any of: 20.*; write more of it")],
)
def test_a_name_that_means_no_single_capture_is_refused(captures, name, problem):
    with pytest.raises(UserError, match=problem):
        find_capture(captures, name)


@pytest.fixture
def points(registry, make_separate_run, make_point):
    """Ids of three points, each captured of a run of its own, in the order of time."""
    points = [make_point(options={"a": a}) for a in range(3)]
    for day, point in enumerate(points):
        capture_run(make_separate_run(day, point=point), registry)
    return [point.id for point in points]


def test_the_latest_is_that_of_the_points_that_are_compared_or_of_all(registry, points):
    def latest(**asked):
        found = resolve_baseline(f"{registry.root}/latest", **asked)
        return {record.point_id for record in load_baseline(found)}

    for point in points:
        assert latest(points=[point]) == {point}
    assert latest(points=["0" * 12]) == {points[-1]}  # no capture has it
    assert latest(apart_from=["run002"]) == {points[1]}  # those of the run itself are passed over
