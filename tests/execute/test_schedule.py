import collections
import itertools

import pytest

from orbax_bench_core.config import ExecutionConfig, MeshConfig
from orbax_bench_core.execute.schedule import schedule


@pytest.fixture
def points(make_point):
    def make(count, meshes=(None,)):
        return [make_point(options={"x": x}, mesh=mesh) for mesh in meshes for x in range(count)]

    return make


def test_each_point_has_each_repeat_once(points):
    found = schedule(points(5), 3, ExecutionConfig())
    assert collections.Counter((p.id, r) for p, r in found) == collections.Counter(
        (p.id, r) for p in points(5) for r in range(3)
    )


def test_interleaved_finishes_a_round_before_the_next(points):
    repeats = [repeat for _, repeat in schedule(points(5), 3, ExecutionConfig())]
    assert repeats == [0] * 5 + [1] * 5 + [2] * 5


def test_rounds_are_shuffled_differently(points):
    found = schedule(points(8), 2, ExecutionConfig())
    first, second = [p.id for p, _ in found[:8]], [p.id for p, _ in found[8:]]
    assert first != second


def test_a_round_visits_each_worker_once(points):
    meshes = [MeshConfig(mesh_axes=("x",), ici_parallelism={"x": size}) for size in (1, 2, 4)]
    found = schedule(points(4, meshes), 1, ExecutionConfig())
    sizes = [point.num_devices for point, _ in found]
    changes = sum(a != b for a, b in itertools.pairwise(sizes))
    assert changes == 2
