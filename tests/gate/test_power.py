"""Slow-down that is detected, by the normal process at the looks."""

import math

import numpy as np
import pytest

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate import chances_of, detectable
from orbax_bench_core.gate.plan import more_blocks
from orbax_bench_core.gate.power import boundaries

RULE = GateRule()


@pytest.mark.parametrize(
    ("per_life", "tau", "expected"),
    [(1, 0.0, (0.61, 0.40, 0.26, 0.20)), (2, 0.02, (0.54, 0.40, 0.26, 0.21))],
)
def test_a_share_for_more_looks_hardly_changes_what_was_published(per_life, tau, expected):
    looks = RULE.looks_of(per_life)
    found = [detectable(0.2, look, RULE, per_life=per_life, tau=tau) for look in looks]
    assert found == pytest.approx(expected, abs=0.006)


def test_the_chances_of_each_word_are_those_of_a_simulated_gate():
    """300 comparisons in one worker, log-normal noise of 20 %: 18, 6 and 76 % at +10 %."""
    none, ten, half = chances_of(0.2, GateRule(), (0.0, 0.1, 0.5))
    assert (ten.regression, ten.passes, ten.open) == pytest.approx((0.17, 0.06, 0.77), abs=0.025)
    assert none.regression < 0.005
    assert half.regression > 0.99


def test_eight_times_in_ten_are_easier():
    assert detectable(0.2, 20, RULE, power=0.8) == pytest.approx(0.353, abs=0.001)


def test_the_detectable_slow_down_lies_beyond_the_tolerance():
    assert detectable(0.0, 20, RULE) == pytest.approx(RULE.tolerance)


def test_more_operations_detect_less():
    found = [detectable(0.1, operations, RULE) for operations in RULE.looks_with_more()]
    assert found == sorted(found, reverse=True)


def test_between_looks_it_is_that_of_the_look_before_and_a_share_of_alpha_detects_less():
    assert detectable(0.1, 39, RULE) == detectable(0.1, 20, RULE)
    assert detectable(0.1, 60, RULE, alpha_scale=1 / 3) > detectable(0.1, 60, RULE)


def test_a_slow_down_of_fewer_seconds_than_matter_is_not_detected():
    rule = GateRule(min_effect_s=0.002)
    assert detectable(0.0, 60, rule, baseline_s=0.01) == pytest.approx(0.2)
    assert detectable(0.0, 60, rule, baseline_s=1.0) == pytest.approx(RULE.tolerance)


def test_looks_too_early_for_their_level_find_nothing():
    rule = GateRule(looks=(2, 60))
    found = boundaries(0.1, rule)
    assert math.isinf(found.regression[:, 0].min())
    assert detectable(0.1, 60, rule) < 0.2


def test_other_looks_and_levels_are_near_those_that_were_fitted():
    near = GateRule(looks=(12, 20, 40, 60))
    assert detectable(0.2, 60, near) == pytest.approx(detectable(0.2, 60, RULE), abs=0.01)


@pytest.mark.parametrize(
    ("sigma", "ratio", "operations", "blocks"),
    [
        pytest.param(0.01, 1.0, 10, 5, id="a clear case needs only the next look"),
        pytest.param(0.15, 1.0, 20, 10, id="an unclear case skips looks that are too early"),
        pytest.param(0.15, 1.05, 20, 20, id="near the tolerance"),
        pytest.param(0.9, 1.0, 60, None, id="what nobody would run is not advised"),
        pytest.param(0.0, 1.0, 60, 20, id="the next look, which only --more reaches"),
        pytest.param(0.3, 1.0, 60, 54, id="a later one of these"),
        pytest.param(0.0, 1.0, 280, None, id="no look is left"),
    ],
)
def test_more_blocks_are_those_that_a_verdict_needs(sigma, ratio, operations, blocks):
    assert more_blocks(sigma, math.log(ratio), operations, RULE) == blocks


@pytest.mark.parametrize("power", [0.5, 0.8, 0.9, 0.99])
def test_at_the_first_look_it_is_the_quantile_of_all_paths(power):
    paths = boundaries(0.07, RULE).regression[:, 0]
    found = detectable(0.07, 10, RULE, power=power)
    assert found == math.expm1(np.quantile(paths, power, method="higher"))
