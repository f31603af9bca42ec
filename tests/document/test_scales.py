"""Scales of plots."""

import itertools

import pytest

from orbax_bench_core.document import Scale


def ticks(scale):
    return [float(label) for _, label in scale.axis(lambda value: f"{value:g}")]


def test_an_outlier_does_not_stretch_a_scale():
    scale = Scale.of([[1.0, 1.1, 1.2, 1.1, 1.0, 90.0], [2.0, 2.1, 2.0, 2.2]])
    assert 2.2 < scale.high < 2.5
    assert scale.place(90.0) == 100


def test_a_row_that_is_slow_as_a_whole_is_no_outlier():
    assert Scale.of([[1.0, 1.1, 1.0, 1.1], [90.0, 91.0, 90.0, 92.0]]).high > 92


def test_of_three_values_none_is_out_unless_by_far():
    assert Scale.of([[1.0, 1.0, 5.0]]).high > 5
    assert Scale.of([[1.0, 1.0, 50.0]]).high < 2


def test_equal_ratios_are_equal_distances():
    scale = Scale(1.0, 100.0)
    assert [scale.place(value) for value in (1, 10, 100, 0.1)] == pytest.approx([0, 50, 100, 0])


@pytest.mark.parametrize(
    ("low", "high"), [(0.0312, 0.0418), (1e-3, 90.0), (0.9, 1.1), (3.0, 3.001), (5.0, 5.1), (1, 4)]
)
def test_ticks_are_few_and_apart(low, high):
    scale = Scale(low, high)
    places = [place for place, _ in scale.axis(str)]
    assert 2 <= len(places) <= 7
    assert all(after - before >= 15 for before, after in itertools.pairwise(places))
    assert all(low <= tick <= high * 1.0001 for tick in ticks(scale))


@pytest.mark.parametrize("rows", [[], [[]], [[0.0]], [[0.0, 1.0]], [[1.0]], [[1e-9, 1e9]]])
def test_every_row_has_a_scale_with_places(rows):
    scale = Scale.of(rows)
    assert all(0 <= scale.place(value) <= 100 for value in (0.0, 1e-12, 1.0, 1e12))
    assert all(0 <= place <= 100 for place, _ in scale.axis(str))
