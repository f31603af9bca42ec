"""The plan of a sweep."""

import json
import sys

import pytest

from orbax_bench_core.config import parse_suite
from orbax_bench_core.engine import batches, plan_sweep
from orbax_bench_core.engine.planning import points_in
from orbax_bench_core.errors import UserError
from orbax_bench_core.leases import batch_name
from orbax_bench_core.lineage import read_planned
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.sweep import expand
from tests.support.processes import ROOT
from tests.support.scripted import NAME

GIB = 2**30


@pytest.fixture
def entries(monkeypatch):
    """Expands a suite of some points, which save some bytes."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def make(number, num_bytes=4, arms=None):
        suite = {
            "suite_name": "sizes",
            "benchmarks": [{"generator": NAME, "options": {"save_s": [*range(number)]}}],
            "checkpoint_config": {"spec": {"w": {"dtype": "uint8", "shape": [num_bytes]}}},
            **({} if arms is None else {"arms": arms}),
        }
        return expand(parse_suite(json.dumps(suite))).points

    return make


@pytest.mark.slow
def test_by_default_a_step_takes_minutes(entries):
    points = entries(40)
    assert [len(batch) for batch in batches(points, repeats=10)] == [40]
    large = entries(40, num_bytes=GIB)
    # 10 repeats of 1 GiB saved and loaded take 86 s by the guess.
    assert {len(batch) for batch in batches(large, repeats=10)} == {3, 1}
    pairs = entries(3, arms={"candidate": {"options": {"load_s": 0.5}}})
    assert [len(batch) for batch in batches(pairs, repeats=10)] == [1, 1, 1]


@pytest.mark.slow
def test_a_loop_has_no_more_steps_than_services_take(entries):
    points = entries(310, num_bytes=100 * GIB)
    assert {len(batch) for batch in batches(points, repeats=10)} == {2}
    assert len(batches(points, repeats=10, points_per_step=1)) == 310
    for each in (-1, 1001):
        with pytest.raises(UserError, match=f"{each} points in one step: it takes 1 to 1000"):
            batches(points, repeats=10, points_per_step=each)


@pytest.mark.slow
def test_steps_fit_what_the_engine_takes_and_a_number_that_does_not_is_refused(entries):
    points = entries(30, num_bytes=100 * GIB)
    assert [len(batch) for batch in batches(points, repeats=10, most_steps=7)] == [5] * 6
    assert len(batches(points, repeats=10, points_per_step=5, most_steps=6)) == 6
    with pytest.raises(UserError, match="30 points in 8 steps of 4: the engine takes 7; give 5"):
        batches(points, repeats=10, points_per_step=4, most_steps=7)


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """Plans a suite for a run of an engine."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    suite = json.dumps({"suite_name": "s", "benchmarks": [{"generator": NAME, "options": {}}]})
    return lambda text=suite, **how: plan_sweep(text, str(tmp_path / "run"), **how).value


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_directory_of_another_run_of_the_engine_is_refused_and_unchanged(begin, tmp_path):
    first = begin(engine_run="monday")
    assert begin(engine_run="monday") == first  # a task that is tried again
    before = contents(tmp_path)
    with pytest.raises(UserError, match=r"holds the run 'monday', begun .*, and this is 'tuesday'"):
        begin(engine_run="tuesday")
    assert contents(tmp_path) == before
    assert begin(engine_run="tuesday", go_on=True) == first
    with pytest.raises(UserError, match="holds the run 'tuesday'"):
        begin(engine_run="monday")


def test_a_directory_of_no_engine_is_refused_to_one_and_a_refused_suite_takes_none(begin):
    with pytest.raises(UserError, match="benchmarks"):
        begin('{"suite_name": "s"}', engine_run="monday")
    begin()
    with pytest.raises(UserError, match="holds a run of no pipeline"):
        begin(engine_run="tuesday")


def test_what_this_image_cannot_measure_is_refused_by_name(begin, tmp_path, monkeypatch):
    for name in ("flax", "torch"):
        monkeypatch.setitem(sys.modules, name, None)
    suite = {
        "suite_name": "s",
        "checkpoint_config": {"nnx": "models:make"},
        "benchmarks": [
            {"generator": name, "options": {}} for name in ("save_restore", "torch_save")
        ],
    }
    with pytest.raises(UserError) as refused:
        begin(json.dumps(suite))
    assert "nnx: models:make needs flax, which this image does not have" in str(refused.value)
    assert "torch_save needs torch" in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_a_file_that_names_no_run_is_refused_by_name(begin, tmp_path):
    begin(engine_run="monday")
    (tmp_path / "run" / "engine_run.json").write_text("[")
    with pytest.raises(UserError, match=r"engine_run\.json: damaged"):
        begin(engine_run="monday")


@pytest.mark.slow
def test_a_plan_is_noted_in_the_run_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    suite = {
        "suite_name": "sizes",
        "benchmarks": [{"generator": NAME, "options": {"save_s": [0.1, 0.2, 0.3]}}],
    }
    found = plan_sweep(json.dumps(suite), str(tmp_path / "out"), points_per_step=2).value
    ids = [batch.split() for batch in found]
    assert [len(batch) for batch in ids] == [2, 1]
    run = RunDirectory(str(tmp_path / "out"))
    assert read_planned(run.root) == {batch_name(batch): tuple(batch) for batch in ids}


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("a1 b2\n", ["a1", "b2"]),
        ('["a1 b2", "c3"]', ["a1", "b2", "c3"]),
        ('{"benchmark": "x"}', ['{"benchmark": "x"}']),
        ("", []),
    ],
)
def test_points_are_named_in_a_text(text, points):
    assert points_in(text) == points


def test_a_torn_list_of_points_is_refused():
    with pytest.raises(UserError, match="not a list of points, as plan-sweep returns it"):
        points_in('["a1",')
