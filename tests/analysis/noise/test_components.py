"""Noise between workers, on made-up workers."""

import numpy as np
import pytest

from orbax_bench_core.analysis.noise.measure import between_workers, expected_bound


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def workers(rng, tau, sigma=0.05, waves=12, count=4, rounds=2, wild=False):
    """Log times of workers that differ by tau, on a machine that drifts."""
    table = sigma * rng.standard_normal((waves, count, rounds))
    table += tau * rng.standard_normal((waves, count, 1))
    table += 0.3 * rng.standard_normal((waves, 1, 1)) + 0.1 * rng.standard_normal(
        (waves, 1, rounds)
    )
    if wild:
        table[rng.random(table.shape) < 0.03] += 1.5
    return table


def test_an_offset_of_workers_is_found_with_its_size(rng):
    found = between_workers(workers(rng, 0.1, waves=60))
    assert found.low < 0.1 < found.high
    assert found.estimate == pytest.approx(0.1, rel=0.15)
    assert found.p_value < 1e-6
    assert (found.workers, found.rounds) == (240, 2)


def test_workers_that_are_the_same_have_a_lower_end_of_zero(rng):
    found = between_workers(workers(rng, 0.0, waves=40))
    assert found.low == 0.0
    assert 0 < found.high < 0.05


def test_a_drift_of_the_machine_is_no_difference_of_workers(rng):
    table = workers(rng, 0.0, waves=40) + np.linspace(0, 2, 40)[:, None, None]
    assert between_workers(table).high < 0.05


def test_stalls_belong_to_no_worker(rng):
    assert between_workers(workers(rng, 0.0, waves=40, wild=True)).estimate < 0.04


@pytest.mark.parametrize("shape", [(5, 1, 4), (5, 4, 1), (0, 4, 2)])
def test_too_few_workers_or_rounds_say_nothing(shape):
    assert between_workers(np.zeros(shape)) is None


def test_times_that_are_all_the_same_do_not_differ():
    found = between_workers(np.ones((3, 4, 2)))
    assert (found.estimate, found.low, found.high, found.p_value) == (0, 0, 0, 1)


def test_workers_that_differ_less_than_chance_would_have_it_are_no_proof_of_no_offset(rng):
    rounds = np.array([[-0.1, 0.1], [0.1, -0.1], [-0.1, 0.1], [0.1, -0.1]])
    times = np.stack([rounds, rounds[::-1]]) + 1e-6 * rng.standard_normal((2, 4, 2))
    assert between_workers(times).high > 0.05


def test_more_workers_lower_the_bound_to_expect():
    bounds = [expected_bound(0.05, waves, 4, 2) for waves in (4, 10, 40)]
    assert bounds == sorted(bounds, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.0, 0.02, 0.05])
@pytest.mark.parametrize("waves", [4, 15])
def test_intervals_hold_the_truth_as_often_as_they_say(rng, tau, waves):
    found = [between_workers(workers(rng, tau, waves=waves)) for _ in range(400)]
    assert sum(each.low <= tau <= each.high for each in found) >= 0.93 * 400
    if not tau:
        assert sum(each.low > 0 for each in found) <= 0.045 * 400
