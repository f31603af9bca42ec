"""The rules of other tools find what is there, and follow their own thresholds."""

import numpy as np
import pytest

from perf.gate.rivals import RIVALS


def said(rule, ratio, sigma=0.01):
    rng = np.random.default_rng(3)
    arms = np.exp(sigma * rng.standard_normal((2, 40, 20)))
    return float(RIVALS[rule](arms[0], ratio * arms[1], rng).mean())


@pytest.mark.parametrize("rule", RIVALS)
def test_a_clear_slow_down_is_found(rule):
    assert said(rule, 1.5) == 1.0


@pytest.mark.parametrize(
    ("rule", "below", "above"),
    [
        ("mean ratio > 5 %", 1.04, 1.06),
        ("Mann-Whitney .002 and 1.1x (asv)", 1.08, 1.12),
        ("bootstrap CI of medians > +1 %", 1.005, 1.03),
        ("criterion-like", 1.005, 1.03),
    ],
)
def test_thresholds_are_those_of_the_tool(rule, below, above):
    assert said(rule, below, 0.005) <= 0.1
    assert said(rule, above, 0.005) >= 0.9


@pytest.mark.parametrize("rule", ["t-test .05", "Mann-Whitney .05"])
def test_significance_needs_no_size(rule):
    assert said(rule, 1.01, 0.002) == 1.0
