"""Typical times at a look: several series share alpha."""

import pytest

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.location import judge_times
from orbax_bench_core.gate.looks import Schedule

RULE = GateRule()


def alone(blocks, rule=RULE):
    """Judges at the last look that so many blocks reach."""
    schedule = Schedule.of(rule, blocks.per_life)
    look = schedule.reached(len(blocks)) - 1
    used = blocks.first(schedule.blocks(look))
    return judge_times({"save": used}, {"save": rule}, look)["save"]


@pytest.mark.parametrize(
    ("ratio", "word"), [(1.4, "REGRESSION"), (1.0, "PASS"), (0.7, "PASS"), (1.16, "REGRESSION")]
)
def test_a_clear_case_is_settled_at_the_first_look(blocks, ratio, word):
    outcome = alone(blocks(5, ratio=ratio, sigma=0.01))
    assert (outcome.word, outcome.look) == (word, 0)


def test_between_tolerance_and_margin_regression_wins(blocks):
    outcome = alone(blocks(5, ratio=1.09, sigma=0.0))
    assert outcome.p_pass == pytest.approx(6.0**-5)
    assert outcome.word == "REGRESSION"


@pytest.fixture
def slightly_slow(blocks):
    """A series whose p-value at one look lies between a third of alpha and alpha."""
    rule = GateRule(looks=(10,), tolerance=0.0, alpha=0.03)
    while True:
        found = blocks(5, ratio=1.05)
        p = alone(found, rule).p_regression
        if p is not None and 0.01425 < p < 0.0285:
            return found, rule


def test_the_order_of_series_does_not_matter(slightly_slow, blocks):
    series, rule = slightly_slow
    found = {"a": series, "b": blocks(5, ratio=2.0), "c": series}
    rules = dict.fromkeys(found, rule)
    one, other = (
        judge_times(dict(each), rules, 0) for each in (found.items(), reversed(found.items()))
    )
    assert all((one[n].word, one[n].alpha) == (other[n].word, other[n].alpha) for n in found)


def test_a_regression_leaves_the_others_its_share(slightly_slow, blocks):
    series, rule = slightly_slow
    found = judge_times({"a": series, "b": blocks(5, ratio=2.0)}, {"a": rule, "b": rule}, 0)
    assert [found[name].word for name in "ab"] == ["REGRESSION", "REGRESSION"]
    assert (found["b"].alpha, found["a"].alpha) == pytest.approx((0.0135, 0.027))


def test_an_offset_of_a_life_is_no_regression(blocks):
    words = {alone(blocks(4, per_life=2, sigma=0.001, tau=0.05)).word for _ in range(20)}
    assert "REGRESSION" not in words


@pytest.mark.parametrize(("seconds", "word"), [(0.6, "PASS"), (0.3, "REGRESSION")])
def test_a_slow_down_of_fewer_seconds_than_matter_passes(blocks, seconds, word):
    series = blocks(5, ratio=1.4, sigma=0.01)
    assert alone(series, GateRule(min_effect_s=seconds)).word == word
