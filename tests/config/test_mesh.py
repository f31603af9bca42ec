"""The `mesh_config` block."""

import pytest

from orbax_bench_core.config.mesh import MeshConfig


def mesh(axes, ici=None, dcn=None):
    return MeshConfig(mesh_axes=axes, ici_parallelism=ici or {}, dcn_parallelism=dcn)


@pytest.mark.parametrize(
    ("lines", "line", "key", "message"),
    [
        ("  ici_parallelism: {a: 2}\n", 4, "mesh_axes", "this key is required"),
        ("  mesh_axes: []\n", 5, "mesh_axes", "a mesh has at least one axis"),
        ("  mesh_axes: [a, a]\n", 5, "mesh_axes", "each axis may be named once, got ['a', 'a']"),
        ("  mesh_axes: data\n", 5, "mesh_axes", "expected a list, got 'data'; write [data]"),
        ("  mesh_axes: [1]\n", 5, "mesh_axes[0]", "expected text, got 1; quote it"),
        (
            "  mesh_axes: [a, b]\n  ici_parallelism: {c: 2}\n",
            6,
            "ici_parallelism",
            "axis 'c' is not one of mesh_axes ['a', 'b']",
        ),
        (
            "  mesh_axes: [a]\n  ici_parallelism: {a: 2}\n  dcn_parallelism: {c: 2}\n",
            7,
            "dcn_parallelism",
            "axis 'c' is not one of mesh_axes ['a']",
        ),
        (
            "  mesh_axes: [a]\n  ici_parallelism:\n    a: 0\n",
            7,
            "ici_parallelism.a",
            "expected greater than 0, got 0",
        ),
        (
            "  mesh_axes: [a]\n  dcn_parallelism: {a: two}\n",
            6,
            "dcn_parallelism.a",
            "expected a whole number, got 'two'",
        ),
        (
            "  mesh_axes: [a]\n  ici_paralelism: {a: 2}\n",
            6,
            "ici_paralelism",
            "unknown key; did you mean 'ici_parallelism'?",
        ),
        (
            "  mesh_axes: [a]\n  process_is_granule: 1\n",
            6,
            "process_is_granule",
            "expected true or false, got 1",
        ),
    ],
)
def test_a_bad_mesh_is_named_at_its_line(only_problem, lines, line, key, message):
    problem = only_problem(f"mesh_config:\n{lines}")
    assert (problem.line, problem.key) == (line, f"mesh_config.{key}")
    assert problem.message == message


def test_an_unknown_axis_of_size_one_changes_nothing():
    assert mesh(("a",), {"a": 4, "b": 1}).shape == (4,)


@pytest.mark.parametrize(
    ("config", "shape", "label"),
    [
        (mesh(("data", "fsdp"), {"data": 2, "fsdp": 4}), (2, 4), "data2fsdp4"),
        (mesh(("data", "fsdp"), {"fsdp": 4}), (1, 4), "fsdp4"),
        (mesh(("data", "fsdp"), {"fsdp": 4}, {"data": 2}), (2, 4), "dcn(data2)·fsdp4"),
        (mesh(("data",), {"data": 4}, {"data": 2}), (8,), "dcn(data2)·data4"),
        (mesh(("data",), None, {"data": 2}), (2,), "dcn(data2)·1"),
        (mesh(("data",)), (1,), "1"),
    ],
)
def test_shape_multiplies_slices_and_the_label_tells_them_apart(config, shape, label):
    assert (config.shape, config.label) == (shape, label)
