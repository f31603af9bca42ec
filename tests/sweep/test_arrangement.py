"""The order of the arms within blocks."""

import collections

from orbax_bench_core.sweep.pair import arrangement


def test_every_order_has_the_same_chance():
    counts = collections.Counter(arrangement("run", "point", block) for block in range(6000))
    assert len(counts) == 6
    assert all(880 < count < 1120 for count in counts.values())  # 4 standard deviations


def test_runs_and_points_have_orders_of_their_own():
    orders = {
        tuple(arrangement(run, point, block) for block in range(20))
        for run in ("a", "b")
        for point in ("p", "q")
    }
    assert len(orders) == 4
