import collections
import itertools

from orbax_bench_core.config import CheckpointConfig, ExecutionConfig, MeshConfig
from orbax_bench_core.execute.schedule import schedule
from orbax_bench_core.sweep import SweepPoint


def points(count, devices=(None,)):
    return [
        SweepPoint(
            benchmark="m.B",
            options={"x": index},
            checkpoint=CheckpointConfig(),
            mesh=None
            if size is None
            else MeshConfig(mesh_axes=("x",), ici_parallelism={"x": size}),
        )
        for size in devices
        for index in range(count)
    ]


def test_each_point_has_each_repeat_once():
    found = schedule(points(5), 3, ExecutionConfig())
    assert collections.Counter((p.id, r) for p, r in found) == collections.Counter(
        (p.id, r) for p in points(5) for r in range(3)
    )


def test_interleaved_finishes_a_round_before_the_next():
    repeats = [repeat for _, repeat in schedule(points(5), 3, ExecutionConfig())]
    assert repeats == [0] * 5 + [1] * 5 + [2] * 5


def test_rounds_are_shuffled_differently():
    found = schedule(points(8), 2, ExecutionConfig())
    first, second = [p.id for p, _ in found[:8]], [p.id for p, _ in found[8:]]
    assert first != second


def test_the_seed_decides_the_order():
    def order(seed):
        return [p.id for p, _ in schedule(points(8), 2, ExecutionConfig(seed=seed))]

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_sequential_finishes_a_point_before_the_next():
    given = points(2)
    found = schedule(given, 3, ExecutionConfig(order="sequential"))
    assert [(p.id, r) for p, r in found] == [(p.id, r) for p in given for r in range(3)]


def test_a_round_visits_each_worker_once():
    found = schedule(points(4, devices=(1, 2, 4)), 1, ExecutionConfig())
    sizes = [point.num_devices for point, _ in found]
    changes = sum(a != b for a, b in itertools.pairwise(sizes))
    assert changes == 2
