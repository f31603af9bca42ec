"""Conflicts of a spec with a mesh, before anything runs."""

import pytest

from orbax_bench_core.config.checkpoint import CheckpointConfig
from orbax_bench_core.config.mesh import MeshConfig, sharding_conflict

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


LEAF = """\
checkpoint_config:
  spec:
    w: {{dtype: float32, shape: [{size}], sharding: [{axis}]}}
"""


@pytest.mark.parametrize(
    ("size", "axis", "message"),
    [
        (9, "d", "dimension 0 has 9 elements, which mesh d8 cannot split into 8 equal parts"),
        (8, "e", "sharding axis 'e' is not in mesh_axes ['d']"),
    ],
)
def test_a_leaf_that_no_mesh_can_hold_is_named_at_its_line(only_problem, size, axis, message):
    mesh = "mesh_config: {mesh_axes: [d], ici_parallelism: {d: 8}}\n"
    problem = only_problem(mesh + LEAF.format(size=size, axis=axis))
    assert (problem.line, problem.key) == (7, "checkpoint_config.spec.w")
    assert message in problem.message


def test_a_leaf_that_one_of_the_meshes_can_hold_is_accepted(accept):
    meshes = (
        "mesh_configs:\n"
        "- {mesh_axes: [d], ici_parallelism: {d: 8}}\n"
        "- {mesh_axes: [d], ici_parallelism: {d: 2}}\n"
    )
    assert len(accept(meshes + LEAF.format(size=6, axis="d")).mesh_configs) == 2
