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


def test_blocked_time_is_lost_whole():
    assert cost([0.5], [], blocked_s=3.0) == {"blocked_s": 3, "lost_s": 3, "lost_steps": 6}


@pytest.mark.parametrize(
    ("before", "during", "background_s", "lost_s"),
    [
        # Ten seconds hold ten undisturbed steps; six were taken.
        pytest.param(1.0, [1.0] * 5 + [5.0], 10.0, 4, id="steps that would have fitted"),
        pytest.param(4.0, [5.0], 0.5, 1, id="a step that outlasts the save counts whole"),
        pytest.param(1.0, [2.0], 100.0, 50, id="a save that outlasts the steps goes on alike"),
    ],
)
def test_time_is_lost_beside_a_save(before, during, background_s, lost_s):
    found = cost([before], during, background_s=background_s)
    assert found["lost_s"] == pytest.approx(lost_s)
    assert found["lost_steps"] == pytest.approx(lost_s / before)
