"""Placement of points that share a worker."""

from orbax_bench_core.config import EnvironmentConfig, MeshConfig
from orbax_bench_core.execute.runner import environments
from orbax_bench_core.sweep import Pair, placement

OLD = EnvironmentConfig(name="old", interpreter="p")


def test_what_makes_a_placement(make_point):
    mesh = MeshConfig(mesh_axes=("d",), ici_parallelism={"d": 4})
    assert placement(make_point()) == (1, 1, "", "reused", True)
    assert placement(make_point(mesh=mesh, processes=2)) == (4, 2, "", "reused", True)
    assert placement(make_point(environment=OLD)) == (1, 1, "old", "reused", True)


def test_environments_are_made_once(make_point):
    point = make_point(environment=OLD)
    assert environments([point, Pair(baseline=point, candidate=point)]) == [OLD]
