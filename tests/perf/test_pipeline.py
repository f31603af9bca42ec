from __future__ import annotations

import pytest

pytest.importorskip("kfp")

from orbax_bench_core.config import parse_suite
from orbax_bench_core.sweep import expand
from perf.pipeline import measure, suite


def test_the_suite_has_as_many_points_as_asked_for() -> None:
    points = expand(parse_suite(suite(40))).points
    assert len({point.id for point in points}) == 40


@pytest.mark.nightly
def test_time_with_a_worker_and_time_without_make_the_whole() -> None:
    total, alone = measure(1)
    assert 0 < alone < total
