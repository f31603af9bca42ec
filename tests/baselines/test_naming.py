"""The capture that a name in a registry means."""

import pytest

from orbax_bench_core.baselines import capture_run, load_baseline, resolve_baseline


@pytest.fixture
def points(registry, make_separate_run, make_point):
    """Ids of three points, each captured of a run of its own, in the order of time."""
    points = [make_point(options={"a": a}) for a in range(3)]
    for day, point in enumerate(points):
        capture_run(make_separate_run(day, point=point), registry)
    return [point.id for point in points]


@pytest.mark.parametrize("asked", [0, 1, 2])
def test_the_latest_is_that_of_the_points_that_are_compared(registry, points, asked):
    found = resolve_baseline(f"{registry.root}/latest", points=[points[asked]])
    assert {record.point_id for record in load_baseline(found)} == {points[asked]}


def test_the_latest_of_all_where_no_capture_has_the_points(registry, points):
    found = resolve_baseline(f"{registry.root}/latest", points=["0" * 12])
    assert {record.point_id for record in load_baseline(found)} == {points[-1]}


def test_captures_of_the_run_itself_are_passed_over(registry, points):
    found = resolve_baseline(f"{registry.root}/latest", apart_from=["run002"])
    assert {record.point_id for record in load_baseline(found)} == {points[1]}
