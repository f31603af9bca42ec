"""Typical times, look by look: the first verdict stands, and several series share alpha."""

import numpy as np
import pytest

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Blocks
from orbax_bench_core.gate.location import settle

RULE = GateRule()


def alone(blocks, rule=RULE):
    return settle({"save": blocks}, {"save": rule})["save"]


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


def test_the_order_of_series_does_not_matter(slightly_slow, blocks):
    series, rule = slightly_slow
    found = {"a": series, "b": blocks(5, ratio=2.0), "c": series}
    rules = dict.fromkeys(found, rule)
    assert settle(found, rules) == settle(dict(reversed(found.items())), rules)


def test_a_regression_leaves_the_others_its_share(slightly_slow, blocks):
    series, rule = slightly_slow
    found = settle({"a": series, "b": blocks(5, ratio=2.0)}, {"a": rule, "b": rule})
    assert [found[name].word for name in "ab"] == ["REGRESSION", "REGRESSION"]
    assert (found["b"].alpha, found["a"].alpha) == pytest.approx((0.015, 0.03))


def test_an_offset_of_a_life_is_no_regression(blocks):
    words = {alone(blocks(4, per_life=2, sigma=0.001, tau=0.05)).word for _ in range(20)}
    assert "REGRESSION" not in words


@pytest.mark.parametrize(("seconds", "word"), [(0.6, "PASS"), (0.3, "REGRESSION")])
def test_a_slow_down_of_fewer_seconds_than_matter_passes(blocks, seconds, word):
    series = blocks(5, ratio=1.4, sigma=0.01)
    assert alone(series, GateRule(min_effect_s=seconds)).word == word
