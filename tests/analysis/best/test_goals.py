"""A goal is a measure, an operation, or several with weights."""

import math

import pytest

from orbax_bench_core.analysis.best import best, parse_goal
from orbax_bench_core.analysis.best.observations import goal_value
from orbax_bench_core.errors import UserError


def test_weights_add_up_to_one():
    assert parse_goal("blocking=3, load=1").weights == {"blocking": 0.75, "load": 0.25}


@pytest.mark.parametrize(
    "text", ["", "save=", "save=0", "save=-1", "save=nan", "save=2=3", "save,save", "a b", "save=x"]
)
def test_what_is_no_goal_is_refused_with_what_is_one(text):
    with pytest.raises(UserError, match=r"--goal"):
        parse_goal(text)


def test_one_percent_of_a_measure_counts_by_its_weight():
    goal = parse_goal("save=3,load=1")
    before = goal_value(goal, {"save": 2.0, "load": 5.0})
    after = goal_value(goal, {"save": 2.0, "load": 5.0 * 1.01**4})
    assert math.isclose(after / before, 1.01)


def test_a_repeat_without_a_measure_has_no_value():
    assert goal_value(parse_goal("save,load"), {"save": 2.0}) is None


def test_a_single_measure_keeps_its_unit():
    assert (parse_goal("save").unit, parse_goal("bytes").unit, parse_goal("a,b").unit) == (
        "s",
        "B",
        "",
    )


def test_a_goal_that_nobody_measured_is_refused_with_those_that_there_are(sweep):
    folder = sweep({"use_ocdbt": (True, False)}, lambda _: 1.0, rounds=2)
    with pytest.raises(UserError, match=r"no repeat has measured 'lod'.*load"):
        best(folder, goal="lod")


def test_without_a_goal_it_is_save(sweep):
    folder = sweep({"use_ocdbt": (True, False)}, lambda _: 1.0, rounds=2)
    assert best(folder).goal.text == "save"
