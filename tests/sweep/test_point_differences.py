from orbax_bench_core.config import MeshConfig
from orbax_bench_core.sweep.point_differences import differences, nearest


def test_equal_points_differ_in_nothing(make_point):
    assert differences(make_point(label="x"), make_point(label="y")) == []


def test_a_difference_names_the_field_and_both_values(make_point):
    found = differences(make_point(options={"a": 1, "b": 2}), make_point(options={"a": 1, "b": 3}))
    assert found == ["options.b: 2, was 3"]


def test_true_is_not_one(make_point):
    found = differences(make_point(options={"a": True}), make_point(options={"a": 1}))
    assert found == ["options.a: true, was 1"]


def test_a_field_that_one_lacks_is_absent(make_point):
    mesh = MeshConfig(mesh_axes=("x",), ici_parallelism={"x": 2})
    found = differences(make_point(mesh=mesh), make_point())
    assert "mesh: absent, was null" in found
    assert "mesh.ici_parallelism.x: 2, was absent" in found


def test_the_nearest_point_differs_in_the_fewest_fields(make_point):
    near, far = make_point(options={"a": 1, "b": 2}), make_point(options={"a": 9, "b": 9})
    assert nearest(make_point(options={"a": 1, "b": 3}), [far, near]) == near


def test_points_of_another_benchmark_are_not_near(make_point):
    assert nearest(make_point(), [make_point(benchmark="m.Other")]) is None
