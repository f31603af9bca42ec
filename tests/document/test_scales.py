"""Scales of plots."""

import pytest

from orbax_bench_core.document import Scale


def test_an_outlier_does_not_stretch_a_scale():
    scale = Scale.of([[1.0, 1.1, 1.2, 1.1, 1.0, 90.0], [2.0, 2.1, 2.0, 2.2]])
    assert 2.2 < scale.high < 2.5
    assert scale.place(90.0) == 100


@pytest.mark.parametrize("rows", [[], [[]], [[0.0]], [[0.0, 1.0]], [[1.0]], [[1e-9, 1e9]]])
def test_every_row_has_a_scale_with_places(rows):
    scale = Scale.of(rows)
    assert all(0 <= scale.place(value) <= 100 for value in (0.0, 1e-12, 1.0, 1e12))
    assert all(0 <= place <= 100 for place, _ in scale.axis(str))
