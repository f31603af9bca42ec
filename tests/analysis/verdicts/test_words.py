"""Verdicts in words and numbers."""

import math

import pytest

from orbax_bench_core.analysis.verdicts import words
from orbax_bench_core.config import GateConfig
from orbax_bench_core.gate import Verdict
from orbax_bench_core.sweep import PairDesign


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1.21, "1.210x"),
        (0.98765, "0.988x"),
        (9.9994, "9.999x"),
        (12.3456, "12.35x"),
        (1234567.0, "1.235e+06x"),
        (math.inf, "∞x"),
        (math.nan, "–"),
        (None, "–"),
    ],
)
def test_a_ratio_has_three_decimals(value, written):
    assert words.ratio(value) == written


@pytest.mark.parametrize(
    ("low", "high", "written"),
    [
        (1.152, 1.271, "[1.152–1.271]"),
        (0.0, math.inf, "[0.000–∞]"),
        (math.nan, 1.0, "–"),
        (None, 1.0, "[0.000–1.000]"),
        (0.9, None, "[0.900–∞]"),
        (None, None, "–"),
    ],
)
def test_an_interval_has_two_ends_or_is_a_dash(low, high, written):
    assert words.interval(Verdict(word="PASS", low=low, high=high)) == written


def test_an_operation_that_decides_nothing_is_in_parentheses(make_operation):
    assert words.word_of(make_operation(primary=False)) == "(PASS)"


def test_a_reason_is_told_once(make_operation):
    found = make_operation(word="INCONCLUSIVE", reason="too early", advice="too early: wait")
    assert words.what_to_do(found) == "too early: wait"


def test_a_reason_that_the_advice_lacks_is_told_before_it(make_operation):
    found = make_operation(word="INCONCLUSIVE", reason="too early", advice="wait")
    assert words.what_to_do(found) == "Not judged: too early. wait"


def test_a_finding_among_many_states_its_false_discovery_rate(make_operation):
    found = make_operation(word="REGRESSION", primary=False, false_discovery=0.04)
    assert words.what_to_do(found).endswith("(False discovery rate: 4 %.)")


def test_what_is_no_finding_states_no_false_discovery_rate(make_operation):
    found = make_operation(primary=False, false_discovery=0.4)
    assert "discovery" not in words.what_to_do(found)


def test_flags_name_their_arm(make_operation):
    found = make_operation(flags={"baseline": ("slow",), "candidate": ("odd", "old")})
    assert words.flags(found) == ["baseline: slow", "candidate: odd", "candidate: old"]


def test_a_flag_of_both_arms_is_told_once(make_operation):
    found = make_operation(flags={"baseline": ("slow",), "candidate": ("slow",)})
    assert words.flags(found) == ["both arms: slow"]


def test_an_operation_without_health_has_no_flags(make_operation):
    assert words.flags(make_operation(health={})) == []


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        ({"blocks": 1}, "1 block"),
        ({"blocks": 10}, "10 blocks"),
        ({"blocks": 0}, "no blocks"),
        ({"mode": "unpaired"}, "unpaired"),
    ],
)
def test_a_design_is_the_number_of_blocks_or_none(make_verdicts, fields, written):
    assert words.design(make_verdicts(**fields)) == written


@pytest.mark.parametrize(
    "told",
    ["save_blocking, save, load", "Tolerance 3 %", "Margin 15 %", "at most 1 %", "at most 5 %"],
)
def test_the_rules_state(told):
    assert told in "\n".join(words.rules(GateConfig()))


def test_the_rules_state_looks_and_what_single_operations_have_different():
    gate = GateConfig(looks=(10, 30), metrics={"load": {"margin": 0.3}}, family="suite")
    told = "\n".join(words.rules(gate))
    assert "Looks at 10, 30 operations" in told
    assert "For load: margin 30 %." in told
    assert "the primary operations of all points together" in told


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ("shared", "Options may still interact with it, by up to 4 % (95 %)"),
        ("one_per_arm", "counts as a difference, by up to 4 % (95 %) by the noise passport."),
    ],
)
def test_a_verdict_names_the_noise_of_processes_that_is_left_open(make_verdicts, workers, said):
    design = PairDesign(workers=workers, left_open=0.04)
    assert said in words.processes(make_verdicts("p", design=design))
