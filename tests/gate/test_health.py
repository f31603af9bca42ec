"""Health of a series of times."""

import math

import numpy as np
import pytest

from orbax_bench_core.analysis.verdicts import why
from orbax_bench_core.gate import health


@pytest.fixture
def steady(rng):
    def build(count, sigma=0.05):
        return np.exp(sigma * rng.standard_normal(count))

    return build


def test_a_steady_series_has_no_flags(steady):
    found = health(steady(60))
    assert (found.flags, found.regimes, found.outliers) == ((), False, 0.0)


def test_the_numbers_of_a_series_of_which_five_do_not_drift():
    found = health([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.n, found.median, found.spread) == (5, 3.0, pytest.approx(2 / 3))
    assert (found.drift, found.drift_p) == (None, None)


@pytest.mark.slow
def test_sigma_is_that_of_the_log(steady):
    assert health(steady(4000, 0.2)).sigma == pytest.approx(0.2, rel=0.1)


def test_a_drift_is_found_with_its_size(steady):
    found = health(steady(40) * np.linspace(1.0, 1.3, 40))
    assert found.drift == pytest.approx(0.3, abs=0.1)
    assert found.drift_p < 0.001
    assert why(found.flags).startswith("drifts by +")


def test_a_series_whose_values_depend_on_each_other_seldom_drifts(rng):
    drifts = 0
    for _ in range(60):
        logs = rng.standard_normal(40)
        for index in range(1, 40):
            logs[index] += 0.6 * logs[index - 1]
        drifts += health(np.exp(0.05 * logs)).drift_p < 0.01
    assert drifts <= 3


def test_a_drift_too_small_to_matter_is_not_flagged():
    assert health(np.linspace(1.0, 1.02, 40)).flags == ()


def test_a_straight_line_is_a_drift():
    found = health(np.exp(np.linspace(0, 1, 8)))
    assert (found.drift_p, found.drift) == (0.0, pytest.approx(math.e - 1))


def test_a_stall_hides_no_drift(steady):
    times = steady(40) * np.linspace(1.0, 1.3, 40)
    times[5] *= 4
    assert health(times).drifts


@pytest.mark.slow
@pytest.mark.parametrize("values", [10, 20, 60])
@pytest.mark.parametrize("rho", [0.0, 0.6, 0.8])
def test_few_series_that_wander_are_flagged(rng, values, rho):
    noise = rng.standard_normal((300, values + 50))
    for now in range(1, values + 50):
        noise[:, now] = rho * noise[:, now - 1] + math.sqrt(1 - rho**2) * noise[:, now]
    found = [health(np.exp(0.2 * row[50:])).flags for row in noise]
    for what in ("drifts", "far from"):
        assert sum(what in why(flags) for flags in found) <= 0.08 * 300


def test_one_far_value_in_ten_is_no_flag(steady):
    times = steady(10)
    times[4] *= 2
    assert (health(times).outliers, health(times).flags) == (pytest.approx(0.1), ())


def test_equal_values_do_not_drift():
    found = health([1.0] * 10)
    assert (found.drift_p, found.drift, found.flags) == (1.0, 0.0, ())


def test_a_slow_state_is_found_with_its_ratio(steady):
    slow = np.repeat([False, True, True, False], 15)
    found = health(steady(60) * np.where(slow, 1.6, 1.0))
    assert found.regimes
    assert found.regime_ratio == pytest.approx(1.6, rel=0.05)
    assert "30 of 60 values" in why(found.flags)
    assert "(changes between them: 2)" in why(found.flags)


def test_values_in_a_slow_state_are_no_outliers(steady):
    slow = np.arange(60) % 3 == 0
    assert health(steady(60) * np.where(slow, 3.0, 1.0)).outliers == 0.0


@pytest.mark.slow
def test_few_series_of_one_kind_look_like_two(rng):
    found = [health(np.exp(0.05 * rng.standard_normal(12))).regimes for _ in range(200)]
    assert sum(found) <= 6


def test_a_stall_or_two_are_outliers_and_no_slow_state(steady):
    times = steady(30)
    times[[7, 20]] *= 3
    found = health(times)
    assert (found.regimes, found.outliers) == (False, pytest.approx(2 / 30))
    assert why(found.flags) == "7 % of the values are far from the others"


def test_cold_values_at_the_start_are_flagged(steady):
    times = steady(10)
    times[:5] *= 3.6
    flag = why(health(times).flags[-1:])
    assert flag.startswith("the first 5 values are 3.")


@pytest.mark.parametrize(("place", "flagged"), [(0, True), (-1, False)])
def test_one_cold_value_is_flagged_at_the_start_and_not_at_the_end(steady, place, flagged):
    times = steady(20)
    times[place] *= 2
    assert ("the first value is" in why(health(times).flags)) == flagged


def test_unusable_values_are_left_out_and_flagged():
    found = health([1.0, math.nan, 0.0, 1.0, -1.0])
    assert found.n == 2
    assert why(found.flags[:1]) == "3 of 5 values are no positive, finite number: left out"


def test_nothing_is_said_to_be_nothing_and_one_value_has_no_spread():
    found = health([])
    assert (found.n, why(found.flags), found.sigma) == (0, "no values", None)
    assert math.isnan(found.median)
    found = health([2.0])
    assert (found.median, found.spread, found.sigma) == (2.0, None, None)


@pytest.mark.slow
def test_a_long_series_is_described_too(steady):
    found = health(steady(5000) * np.linspace(1, 2, 5000))
    assert found.drift == pytest.approx(1.0, rel=0.1)
