"""Figures that the gate must reach, on fewer comparisons than `python -m perf.gate` makes."""

import math

import pytest

from perf.gate.experiments import Cell, run
from perf.gate.figures import ALONE, RULE, SLOWER, SOMEWHAT_SLOWER, TWENTY, Sources
from perf.gate.replay import read_series

SOURCES = Sources.of(read_series())
REAL = {series.name: series for series in (*SOURCES.real, *SOURCES.wild)}
NAMES = (*SOURCES.regimes, *REAL)
REPLAYED = ("busy save", "busy load")


def tally(kind, name, ratio, series, rule=RULE):
    source = REAL.get(name, name)
    return run((Cell(kind=kind, source=source, ratio=ratio, series=series, rule=rule), 7))


def allowed(rate, series):
    """What three Monte Carlo errors leave of a target."""
    return 3 * math.sqrt(rate * (1 - rate) / series)


@pytest.mark.parametrize("name", NAMES)
def test_the_test_alone_keeps_its_level(name):
    found = tally("verdicts", name, 1.0, 120, ALONE)
    assert found.rate("REGRESSION") <= 0.01 + allowed(0.01, 120)


@pytest.mark.parametrize("name", NAMES)
def test_a_slow_down_within_the_tolerance_seldom_regresses(name):
    found = tally("verdicts", name, 1 + RULE.tolerance, 120)
    assert found.rate("REGRESSION") <= 0.01 + allowed(0.01, 120)


@pytest.mark.parametrize("name", [*SOURCES.regimes, *REPLAYED])
def test_a_slow_down_at_the_margin_seldom_passes(name):
    found = tally("verdicts", name, 1 + RULE.margin, 100)
    assert found.rate("PASS") <= 0.05 + allowed(0.05, 100)


@pytest.mark.parametrize("name", NAMES)
def test_a_fifth_slower_is_found(name):
    found = tally("verdicts", name, SLOWER, 60)
    assert found.rate("REGRESSION") >= 0.95 - allowed(0.95, 60)


def test_a_tenth_slower_is_found_with_twenty_operations():
    assert tally("verdicts", "iid", SOMEWHAT_SLOWER, 100, TWENTY).rate("REGRESSION") >= 0.8


@pytest.mark.parametrize("ratio", [1.0, SLOWER])
def test_a_clear_answer_is_cheap(ratio):
    assert tally("verdicts", "iid", ratio, 100).mean_operations <= 12


@pytest.mark.parametrize("ratio", [1.0, SLOWER])
def test_an_answer_on_wild_data_is_affordable(ratio):
    found = [tally("verdicts", series.name, ratio, 60) for series in SOURCES.wild]
    assert sum(one.mean_operations for one in found) / len(found) <= 35


@pytest.mark.slow
@pytest.mark.parametrize("name", ["iid", "regime", "busy save"])
def test_intervals_cover_what_they_claim(name):
    found = tally("coverage", name, SOMEWHAT_SLOWER, 80)
    assert abs(found.rate("covered") - 0.95) <= 0.01 + allowed(0.95, 80)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "rule", "least"),
    [
        ("drift", "mean ratio > 5 %", 0.8),
        ("drift", "t-test .05", 0.9),
        ("session", "Mann-Whitney .05", 0.2),
        ("regime", "criterion-like", 0.1),
        ("busy load", "bootstrap CI of medians > +1 %", 0.05),
        ("session", "Mann-Whitney .002 and 1.1x (asv)", 0.03),
    ],
)
def test_the_rivals_cry_wolf(source, rule, least):
    assert tally("rivals", source, 1.0, 100).rate(rule) >= least


@pytest.mark.slow
def test_the_rivals_are_calibrated_where_their_assumptions_hold():
    found = tally("rivals", "iid", 1.0, 200)
    assert max(found.rate(rule) for rule in found.counts) <= 0.06
