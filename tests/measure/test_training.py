"""Cost of a save, from step times."""

import pytest

from orbax_bench_core.measure import training


def by_name(readings):
    return {one.metric.removeprefix("7_overhead/train_"): one.value for one in readings}


def cost(before, during, blocked_s=0.0, background_s=0.0):
    return by_name(
        training.interference_of_save(
            before, during, blocked_s=blocked_s, background_s=background_s
        )
    )


def test_a_phase_has_number_median_and_mean():
    assert by_name(training.interference_of_steps([1.0, 2.0, 6.0])) == {
        "steps": 3,
        "step_median_s": 2,
        "step_mean_s": 3,
    }


def test_a_phase_without_steps_has_their_number_only():
    assert by_name(training.interference_of_steps([], beside=[1.0])) == {"steps": 0}


def test_inflation_is_a_ratio_of_means_so_that_one_stall_counts():
    assert (
        by_name(training.interference_of_steps([1.0, 1.0, 7.0], beside=[1.0, 1.0]))[
            "step_inflation"
        ]
        == 3
    )


def test_lost_steps_are_those_that_would_have_fitted_beside_those_taken():
    # Ten seconds hold ten undisturbed steps; six were taken.
    assert cost([1.0], [1.0, 1.0, 1.0, 1.0, 1.0, 5.0], background_s=10.0)["lost_steps"] == (
        pytest.approx(4)
    )


def test_blocked_time_is_lost_whole():
    assert cost([0.5], [], blocked_s=3.0) == {"blocked_s": 3, "lost_s": 3, "lost_steps": 6}


def test_a_step_that_outlasts_the_save_counts_whole():
    assert cost([4.0], [5.0], background_s=0.5)["lost_s"] == pytest.approx(1)


def test_a_save_that_outlasts_the_steps_goes_on_as_they_show():
    assert cost([1.0], [2.0], background_s=100.0)["lost_s"] == pytest.approx(50)
