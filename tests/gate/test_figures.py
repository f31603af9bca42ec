"""Figures that the gate must reach, on fewer comparisons than `python -m perf.gate` makes."""

import dataclasses
import math

import pytest

from perf.gate.cells import Cell
from perf.gate.designs import IN_TURNS, LIVES, ONE_WORKER, PER_ARM_PROCESS, with_tau
from perf.gate.experiments import run
from perf.gate.replay import read_series
from perf.gate.rules import ALONE, MARGIN, RULE, SLOWER, SOMEWHAT_SLOWER, TOLERANCE, TWENTY
from perf.gate.sources import Sources

SOURCES = Sources.of(read_series())
REAL = {series.name: series for series in (*SOURCES.real, *SOURCES.wild)}
REPLAYED = ("busy save", "busy load")
# `perf.gate --quick` makes more comparisons of each series, every night.
EACH = [
    *SOURCES.regimes,
    *(
        name if name in REPLAYED else pytest.param(name, marks=pytest.mark.extended)
        for name in REAL
    ),
]
FEW = (*SOURCES.regimes[:1], "regime", "busy save")


def tally(kind, name, ratio, series, **fields):
    source = REAL.get(name, name)
    cell = Cell(kind=kind, source=source, ratio=ratio, series=series, **fields)
    return run((cell, 7))


def allowed(rate, series):
    """What three Monte Carlo errors leave of a target."""
    return 3 * math.sqrt(rate * (1 - rate) / series)


@pytest.mark.parametrize("name", EACH)
def test_neither_equal_times_nor_a_slow_down_within_the_tolerance_often_regress(name):
    found = tally("test alone", name, 1.0, 120, rule=ALONE)
    assert found.rate("regression") <= 0.01 + allowed(0.01, 120)
    found = tally("time", name, TOLERANCE, 80)
    assert found.rate("regression") <= 0.01 + allowed(0.01, 80)


@pytest.mark.parametrize("name", [*SOURCES.regimes, *REPLAYED])
def test_a_slow_down_at_the_margin_seldom_passes(name):
    found = tally("time", name, MARGIN, 60)
    assert found.rate("passes") <= 0.05 + allowed(0.05, 60)


@pytest.mark.parametrize("name", EACH)
def test_a_fifth_slower_is_found(name):
    found = tally("time", name, SLOWER, 50)
    assert found.rate("regression") >= 0.95 - allowed(0.95, 50)


def test_a_tenth_slower_is_found_with_twenty_operations():
    found = tally("time", "iid", SOMEWHAT_SLOWER, 100, rule=TWENTY)
    assert found.rate("regression") >= 0.8


@pytest.mark.parametrize(("ratio", "most"), [(1.0, 14), (SLOWER, 12)])
def test_a_clear_answer_is_cheap(ratio, most):
    assert tally("time", "iid", ratio, 100).mean_operations <= most


@pytest.mark.parametrize(("ratio", "most"), [(1.0, 42), (SLOWER, 35)])
def test_an_answer_on_wild_data_is_affordable(ratio, most):
    found = [tally("time", series.name, ratio, 50) for series in SOURCES.wild]
    assert sum(one.mean_operations for one in found) / len(found) <= most


@pytest.mark.parametrize("design", [LIVES, IN_TURNS], ids=["alive", "in turns"])
@pytest.mark.parametrize("name", FEW)
def test_offsets_of_processes_break_no_level_of_lives(name, design):
    offset = with_tau(design, 0.05)
    found = tally("time", name, TOLERANCE, 60, design=offset)
    assert found.rate("regression") <= 0.01 + allowed(0.01, 60)
    found = tally("time", name, MARGIN, 40, design=offset)
    assert found.rate("passes") <= 0.05 + allowed(0.05, 40)


def test_offsets_of_processes_break_the_level_of_one_process_per_arm():
    foil = with_tau(PER_ARM_PROCESS, 0.05)
    assert tally("time", "iid", TOLERANCE, 100, design=foil).rate("regression") > 0.1


@pytest.mark.parametrize("design", [ONE_WORKER, with_tau(LIVES, 0.02)], ids=["one", "lives"])
def test_stalls_are_found_and_equal_ones_are_not(design):
    cell = Cell(kind="stalls", series=25, design=design, candidate=0.2)
    assert run((cell, 7)).rate("regression") >= 0.7
    equal = dataclasses.replace(cell, candidate=0.1, baseline=0.1)
    assert run((equal, 7)).rate("regression") <= 0.01 + allowed(0.01, 25)


@pytest.mark.parametrize("design", [ONE_WORKER, LIVES], ids=["one", "lives"])
def test_failures_are_found_and_equal_ones_are_not(design):
    cell = Cell(kind="failures", series=50, design=design, candidate=0.3)
    assert run((cell, 7)).rate("regression") >= 0.9
    equal = dataclasses.replace(cell, candidate=0.05, baseline=0.05)
    assert run((equal, 7)).rate("regression") <= allowed(0.005, 50)


@pytest.mark.slow
@pytest.mark.parametrize("design", [ONE_WORKER, with_tau(LIVES, 0.05)], ids=["one", "lives"])
@pytest.mark.parametrize(("power", "look"), [(0.8, 1), (0.9, 3)])
def test_what_is_detectable_is_found_as_often_as_is_said(design, power, look):
    cell = Cell(kind="detectable", series=200, design=design, sigma=0.2, look=look, power=power)
    assert abs(run((cell, 7)).rate("regression") - power) <= 0.03 + allowed(power, 200)


@pytest.mark.slow
@pytest.mark.parametrize("design", [ONE_WORKER, with_tau(LIVES, 0.05)], ids=["one", "lives"])
def test_intervals_cover_the_truth_and_agree_with_the_verdict(design):
    found = tally("interval", "stall", SOMEWHAT_SLOWER, 60, design=design)
    assert found.rate("covered") >= 0.95 - allowed(0.95, 60)
    assert found.rate("contrary") == 0


@pytest.mark.parametrize("floor", [0.002, 0.001])
def test_a_smallest_slow_down_in_seconds_keeps_the_levels(floor):
    fields = {"sigma": 0.1, "rule": RULE.model_copy(update={"min_effect_s": floor})}
    found = tally("floor", "iid", TOLERANCE, 40, **fields)
    assert found.rate("regression") <= 0.01 + allowed(0.01, 40)
    found = tally("floor", "iid", MARGIN, 40, **fields)
    assert found.rate("passes") <= 0.05 + allowed(0.05, 40)


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
