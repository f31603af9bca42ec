"""Change points: where they are, how often there is none, and what one wild run does."""

import numpy as np
import pytest

from orbax_bench_core.analysis.history.changes import FEWEST, change_points

NOISE = np.random.default_rng(7).normal(size=200)


def found(values, **options):
    return [change.index for change in change_points(values, **options)]


def test_a_step_is_found_where_it_is():
    assert found([*NOISE[:30], *(8 + NOISE[30:60])]) == [30]


def test_a_step_and_its_way_back_are_found():
    assert found([*NOISE[:20], *(8 + NOISE[20:40]), *NOISE[40:60]]) == [20, 40]


def test_a_step_half_way_back_is_found():
    assert found([*NOISE[:14], *(16 + NOISE[14:26]), *(8 + NOISE[26:40])]) == [14, 26]


def test_a_step_is_found_four_runs_later():
    assert found([*NOISE[:56], *(20 + NOISE[56:60])]) == [56]


def test_one_wild_run_is_no_change():
    values = list(NOISE[:60])
    values[30] = 1e9
    assert found(values) == []


def test_a_series_that_does_not_change_at_all_has_no_change():
    assert found([1.0] * 50) == []


def test_the_p_value_of_a_clear_step_is_as_small_as_can_be():
    (change,) = change_points([*NOISE[:30], *(8 + NOISE[30:60])])
    assert change.p_value == pytest.approx(0.001)


@pytest.mark.parametrize("length", [0, 1, FEWEST - 1])
def test_short_series_have_none(length):
    assert found([0.0] * (length // 2) + [100.0] * (length - length // 2)) == []


def test_the_clearest_step_in_the_fewest_runs_is_found():
    half = FEWEST // 2
    assert found([*NOISE[:half], *(100 + NOISE[half:FEWEST])]) == [half]


@pytest.mark.slow
@pytest.mark.parametrize(("significance", "most"), [(0.01, 0.02), (0.05, 0.065)])
@pytest.mark.parametrize("length", [12, 60])
def test_without_a_change_few_series_have_one(significance, most, length):
    random = np.random.default_rng(3)
    # The noise has heavy tails: the level holds for any distribution.
    series = random.standard_t(2, size=(500, length))
    assert sum(bool(found(values, significance=significance)) for values in series) <= most * 500


@pytest.mark.parametrize("significance", [0.0, 0.0001, 0.5, 1.0])
def test_a_level_that_random_orders_cannot_tell_is_refused(significance):
    with pytest.raises(ValueError, match=r"give one from 0\.001 to 0\.1"):
        change_points(NOISE, significance=significance)
