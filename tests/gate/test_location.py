"""Typical times, look by look: the first verdict stands, and several series share alpha."""

import numpy as np
import pytest

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Blocks
from orbax_bench_core.gate.location import settle

RULE = GateRule()


def alone(blocks, rule=RULE, **kwargs):
    return settle({"save": blocks}, {"save": rule}, **kwargs)["save"]


@pytest.mark.parametrize(
    ("ratio", "word"), [(1.4, "REGRESSION"), (1.0, "PASS"), (0.7, "PASS"), (1.16, "REGRESSION")]
)
def test_a_clear_case_is_settled_at_the_first_look(blocks, ratio, word):
    outcome = alone(blocks(30, ratio=ratio, sigma=0.01))
    assert (outcome.word, outcome.look) == (word, 0)


def test_between_tolerance_and_margin_regression_wins(blocks):
    outcome = alone(blocks(5, ratio=1.09, sigma=0.0))
    assert outcome.p_pass == pytest.approx(6.0**-5)
    assert outcome.word == "REGRESSION"


def test_before_the_first_look_nothing_is_said(blocks):
    outcome = alone(blocks(4, ratio=5.0))
    assert (outcome.word, outcome.look, outcome.p_regression) == ("INCONCLUSIVE", None, None)


def test_without_a_verdict_the_last_look_that_was_reached_is_told(blocks):
    outcome = alone(blocks(12, ratio=1.08, sigma=0.3))
    assert (outcome.word, outcome.look) == ("INCONCLUSIVE", 1)


def test_the_first_verdict_stands_whatever_comes_later(blocks):
    early, late = blocks(5, ratio=1.0, sigma=0.01), blocks(25, ratio=3.0, sigma=0.01)
    both = Blocks(
        logs=np.concatenate([early.logs, late.logs]),
        candidate=np.concatenate([early.candidate, late.candidate]),
        failed=np.concatenate([early.failed, late.failed]),
    )
    assert alone(both) == alone(early)


@pytest.fixture
def slightly_slow(blocks):
    """A series whose p-value at one look lies between a third of alpha and alpha."""
    rule = GateRule(looks=(10,), tolerance=0.0, alpha=0.03)
    while True:
        found = blocks(5, ratio=1.05)
        p = alone(found, rule).p_regression
        if p is not None and 0.015 < p < 0.03:
            return found, rule


def test_two_series_share_alpha(slightly_slow, blocks):
    series, rule = slightly_slow
    assert alone(series, rule).word == "REGRESSION"
    together = settle({"a": series, "b": blocks(5)}, {"a": rule, "b": rule})
    assert together["a"].word != "REGRESSION"


def test_a_regression_leaves_the_others_its_share(slightly_slow, blocks):
    series, rule = slightly_slow
    together = settle({"a": series, "b": blocks(5, ratio=2.0)}, {"a": rule, "b": rule})
    assert [together[name].word for name in "ab"] == ["REGRESSION", "REGRESSION"]


def test_a_member_of_the_family_without_data_keeps_its_share(slightly_slow):
    series, rule = slightly_slow
    assert alone(series, rule, family=2).word != "REGRESSION"


def test_alpha_can_be_a_share_of_a_larger_familys(slightly_slow):
    series, rule = slightly_slow
    assert alone(series, rule, alpha_scale=0.5).word != "REGRESSION"


def test_the_order_of_series_does_not_matter(slightly_slow, blocks):
    series, rule = slightly_slow
    found = {"a": series, "b": blocks(5, ratio=2.0), "c": series}
    rules = dict.fromkeys(found, rule)
    assert settle(found, rules) == settle(dict(reversed(found.items())), rules)


def test_no_series_have_no_outcomes():
    assert settle({}, {}) == {}


def test_the_level_is_what_holm_left(slightly_slow, blocks):
    series, rule = slightly_slow
    found = settle({"a": series, "b": blocks(5, ratio=2.0)}, {"a": rule, "b": rule})
    assert (found["b"].alpha, found["a"].alpha) == pytest.approx((0.015, 0.03))


def test_lives_have_looks_of_their_own(blocks):
    three, four = blocks(3, ratio=2.0, per_life=2), blocks(4, ratio=2.0, per_life=2)
    assert alone(three).look is None
    assert (alone(four).word, alone(four).look) == ("REGRESSION", 0)


def test_an_offset_of_a_life_is_no_regression(blocks):
    words = {alone(blocks(4, per_life=2, sigma=0.001, tau=0.05)).word for _ in range(20)}
    assert "REGRESSION" not in words


def test_a_slow_down_of_fewer_seconds_than_matter_passes(blocks):
    series = blocks(5, ratio=1.4, sigma=0.01)
    assert alone(series).word == "REGRESSION"
    assert alone(series, GateRule(min_effect_s=0.6)).word == "PASS"


def test_a_slow_down_of_more_seconds_than_matter_is_a_regression(blocks):
    found = alone(blocks(5, ratio=1.4, sigma=0.01), GateRule(min_effect_s=0.3))
    assert found.word == "REGRESSION"
