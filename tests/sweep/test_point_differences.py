from orbax_bench_core.sweep.point import nearest


def test_the_nearest_point_differs_in_the_fewest_fields(make_point):
    near, far = make_point(options={"a": 1, "b": 2}), make_point(options={"a": 9, "b": 9})
    assert nearest(make_point(options={"a": 1, "b": 3}), [far, near]) == near


def test_points_of_another_benchmark_are_not_near(make_point):
    assert nearest(make_point(), [make_point(benchmark="m.Other")]) is None
