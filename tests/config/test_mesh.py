"""The `mesh_config` block, and conflicts of a spec with a mesh, before anything runs."""

import pytest

from orbax_bench_core.config.checkpoint import CheckpointConfig
from orbax_bench_core.config.mesh import MeshConfig, sharding_conflict


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
            "  mesh_axes: [a]\n  ici_parallelism: {a: 2}\n  dcn_parallelism: {c: 2}\n",
            7,
            "dcn_parallelism",
            "axis 'c' is not one of mesh_axes ['a']",
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


MESH = MeshConfig(mesh_axes=("x", "y"), ici_parallelism={"x": 4, "y": 2})


def array(shape, sharding):
    leaf = {"dtype": "int8", "shape": shape, "sharding": sharding}
    return CheckpointConfig(spec={"outer": {"a": leaf}})


@pytest.mark.parametrize(
    ("shape", "sharding", "message"),
    [
        ([8, 8], ["x", "z"], "sharding axis 'z' is not in mesh_axes ['x', 'y']"),
        ([8, 8], ["x", "x"], "axis 'x' shards two dimensions; use it once"),
        ([8, 8], [["x", "y"], "y"], "axis 'y' shards two dimensions; use it once"),
        (
            [8, 9],
            [None, "y"],
            "which mesh x4y2 cannot split into 2 equal parts; use a multiple of 2",
        ),
        ([12], [["x", "y"]], "dimension 0 has 12 elements, which mesh x4y2 cannot split into 8 "),
    ],
)
def test_a_leaf_that_a_mesh_cannot_hold_is_named(shape, sharding, message):
    conflict = sharding_conflict(array(shape, sharding), MESH)
    assert conflict.where == ("outer", "a")
    assert message in conflict.message


@pytest.mark.parametrize(
    ("shape", "sharding"),
    [
        ([8, 8], ["x", "y"]),
        ([8, 3], [["x", "y"], None]),
        ([3, 3], None),
        ([3, 3], []),
        ([3, 8], [None, "x"]),
        ([0, 8], ["x", None]),
    ],
)
def test_a_leaf_that_a_mesh_can_hold_is_no_conflict(shape, sharding):
    assert sharding_conflict(array(shape, sharding), MESH) is None


def test_a_leaf_that_one_of_the_meshes_can_hold_is_accepted(accept):
    text = (
        "mesh_configs:\n"
        "- {mesh_axes: [d], ici_parallelism: {d: 8}}\n"
        "- {mesh_axes: [d], ici_parallelism: {d: 2}}\n"
        "checkpoint_config: {spec: {w: {dtype: float32, shape: [6], sharding: [d]}}}\n"
    )
    assert len(accept(text).mesh_configs) == 2
