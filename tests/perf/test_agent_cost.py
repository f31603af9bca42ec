"""Cost of an agent: the bound of a middle, and both modes in short."""

import random
import statistics

import pytest

from perf import agent_cost


def test_the_bound_is_below_the_truth_in_about_5_of_100_and_close():
    draw, missed, bounds = random.Random(1), 0, []
    for _ in range(100):
        _, _, bound = agent_cost.upper_bound([draw.gauss(0, 1) for _ in range(40)])
        missed += bound < 0
        bounds.append(bound)
    assert 0 < missed <= 12
    assert statistics.mean(bounds) == pytest.approx(1.645 / 40**0.5, rel=0.15)


def test_outliers_hardly_move_the_middle():
    middle, error, bound = agent_cost.upper_bound([*range(-20, 21), 1000])
    assert middle < 1.5
    assert middle < bound < 8
    assert error == pytest.approx((bound - middle) / 1.645)


@pytest.mark.nightly
def test_an_idle_agent_writes_nothing():
    share, written = agent_cost.idle(3)
    assert written.value == 0
    assert share.value < 0.1  # a claim about the machine would need a minute


@pytest.mark.nightly
def test_saves_are_taken_with_and_without_an_agent():
    with_agent, again = agent_cost.save(10)
    assert abs(with_agent.value) < 1
    assert again.met is None
