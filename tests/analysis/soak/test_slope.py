"""Growth per save, its interval, and the verdict on a limit."""

import numpy as np
import pytest

from orbax_bench_core.analysis.soak.model import Slope
from orbax_bench_core.analysis.soak.soak import saves_to_decide, slope_of, word_of
from perf.soak.known import SERIES, words_of


def slope(value, spread=0.01):
    return Slope(per_save=value, low=value - spread, high=value + spread)


def test_a_line_has_its_slope_and_no_width():
    found = slope_of([5 + 0.25 * save for save in range(40)])
    assert (found.per_save, found.low, found.high) == (0.25, 0.25, 0.25)


def test_one_spike_moves_nothing():
    levels = [100.0] * 60
    levels[30] = 900.0
    assert slope_of(levels).per_save == 0


@pytest.mark.parametrize("stride", [1, 3])
def test_the_interval_is_that_of_independent_noise_where_it_is_independent(stride):
    """A Theil-Sen slope of n values has a variance of 12 / n^3 over its efficiency, 3 / pi."""
    count = 360 * stride
    levels = np.random.default_rng(0).normal(size=count) + 0.01 * np.arange(count)
    found, deviation = slope_of(levels.tolist()), np.sqrt(12 / count**3 * np.pi / 3)
    assert found.per_save == pytest.approx(0.01, abs=3 * deviation)
    assert found.low < found.per_save < found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 * deviation, rel=0.25)


@pytest.mark.slow
def test_of_a_long_series_means_are_taken_and_the_slope_stays_per_save():
    levels = SERIES["leak"](np.random.default_rng(0), 2050)
    found = slope_of(levels.tolist())
    assert found.low < 0.5 < found.high
    assert found.high - found.low < 0.01


@pytest.mark.parametrize(
    ("whole", "half", "word"),
    [
        (0.2, 0.2, "LEAK"),
        (0.2, 0.05, "INCONCLUSIVE"),
        (0.05, 0.2, "INCONCLUSIVE"),
        (0.02, 0.03, "PASS"),
        (0.095, 0.02, "INCONCLUSIVE"),
    ],
)
def test_a_verdict_holds_for_all_saves_and_for_the_second_half(whole, half, word):
    assert word_of(slope(whole), slope(half), 0.1) == word


def test_while_it_warms_up_twice_as_many_saves_tell():
    assert saves_to_decide(slope(0.2), slope(0.05), 0.1, 200) == 400


def test_a_wide_interval_takes_more_saves_the_wider_it_is():
    narrow = saves_to_decide(slope(0.05, 0.06), slope(0.05, 0.06), 0.1, 200)
    wide = saves_to_decide(slope(0.05, 0.6), slope(0.05, 0.6), 0.1, 200)
    assert 200 < narrow < wide < 2000


def test_no_number_of_saves_tells_a_growth_that_is_the_limit():
    assert saves_to_decide(slope(0.101), slope(0.101), 0.1, 200) is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ar1", "step", "warm_up"])
def test_what_only_looks_like_a_leak_is_none(kind):
    assert words_of(kind, 2)["LEAK"] == 0


@pytest.mark.slow
def test_a_leak_in_noise_is_found():
    assert words_of("leak", 2) == {"LEAK": 2}
