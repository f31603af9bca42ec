"""Points put into the batches that steps measure."""

import json

import pytest

from orbax_bench_core.config import parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.leases import batch_name
from orbax_bench_core.lineage import read_planned
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps import batches, plan
from orbax_bench_core.steps.planning import points_in
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
    with pytest.raises(UserError, match="1001 points in one step: it takes 1000 at most"):
        batches(points, repeats=10, points_per_step=1001)


@pytest.mark.slow
def test_a_plan_is_noted_in_the_run_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    suite = {
        "suite_name": "sizes",
        "benchmarks": [{"generator": NAME, "options": {"save_s": [0.1, 0.2, 0.3]}}],
    }
    found = plan(json.dumps(suite), str(tmp_path / "out"), points_per_step=2)
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
