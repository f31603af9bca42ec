"""Verdicts in words and numbers."""

import math

import pytest

from orbax_bench_core.analysis.verdicts import words
from orbax_bench_core.analysis.verdicts.headlines import (
    headline,
    nearest_to_trouble,
    worst_first,
)
from orbax_bench_core.analysis.verdicts.model import Unmatched
from orbax_bench_core.analysis.verdicts.words import unmatched_line
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
        (0.0, math.inf, "–"),
        (math.nan, 1.0, "–"),
        (None, 1.0, "at most 1.000"),
        (0.9, None, "at least 0.900"),
        (None, None, "–"),
    ],
)
def test_an_interval_says_which_ends_it_has(low, high, written):
    assert words.interval(Verdict(word="PASS", low=low, high=high)) == written


def test_a_reason_is_told_once(make_operation):
    found = make_operation(word="INCONCLUSIVE", reason="too early", advice="too early: wait")
    assert words.what_to_do(found) == "too early: wait"


def test_what_is_no_finding_states_no_false_discovery_rate(make_operation):
    found = make_operation(primary=False, false_discovery=0.4)
    assert "discovery" not in words.what_to_do(found)


def test_flags_name_their_arm(make_operation):
    found = make_operation(flags={"baseline": ("slow",), "candidate": ("odd", "old")})
    assert words.flags(found) == ["baseline: slow", "candidate: odd", "candidate: old"]


def test_a_flag_of_both_arms_is_told_once(make_operation):
    found = make_operation(flags={"baseline": ("slow",), "candidate": ("slow",)})
    assert words.flags(found) == ["both arms: slow"]


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


def test_the_rules_state_looks_and_what_single_operations_have_different():
    gate = GateConfig(looks=(10, 30), metrics={"load": {"margin": 0.3}}, family="suite")
    told = "\n".join(words.rules(gate))
    assert "Looks at 10, 30 operations" in told
    assert "For load: margin 30 %." in told
    assert "the primary operations of all points together" in told


@pytest.mark.parametrize(
    ("design", "said"),
    [
        (PairDesign(), "One worker process for both arms: the verdict is about this process."),
        (
            PairDesign(workers="one_per_arm", left_open=0.04),
            "counts as a difference, by up to 4 % (95 %) by the noise passport.",
        ),
    ],
)
def test_a_verdict_names_the_processes_that_it_is_about(make_verdicts, design, said):
    assert said in words.processes(make_verdicts("p", design=design))


def test_processes_after_those_of_the_times_are_not_said_to_be_in_the_interval(
    make_operation, make_verdicts
):
    early = make_operation(verdict={"operations": 10})
    point = make_verdicts("p", early, design=PairDesign(blocks_per_process=2))
    assert words.processes(point) == (
        "5 worker processes, each of both arms; what differs between the first 3, by which the "
        "times were judged, is in the interval."
    )
    assert words.rules(GateConfig(looks=(10, 20))) == words.rules(
        GateConfig(looks=(10, 20), max_stalls=None, max_failures=None)
    )  # too few looks for the limits by default


def test_the_worst_points_come_first_and_others_stay_as_they_were(make_operation, make_verdicts):
    a, b = make_verdicts("a"), make_verdicts("b")
    regressed = make_verdicts("r", make_operation(word="REGRESSION"))
    unpaired = make_verdicts("u", make_operation(word="REGRESSION"), mode="unpaired")
    failed = make_verdicts("f", make_operation(word="INCONCLUSIVE"), failed=True)
    undecided = make_verdicts("i", make_operation(word="INCONCLUSIVE"))
    given = [b, undecided, a, unpaired, failed, regressed]
    assert worst_first(given) == [regressed, unpaired, failed, undecided, b, a]


@pytest.mark.parametrize(
    ("others", "nearest"),
    [
        ([("a", "PASS", 1.1), ("b", "PASS", 1.2)], "b"),
        ([("a", "REGRESSION", 1.1), ("b", "PASS", 1.2)], "a"),
        ([("a", "INCONCLUSIVE", 1.0), ("b", "PASS", 1.2)], "a"),
        ([("a", "INCONCLUSIVE", 1.3), ("b", "INCONCLUSIVE", None)], "b"),
        ([("a", "INCONCLUSIVE", 1.3), ("b", "INCONCLUSIVE", math.nan)], "b"),
    ],
)
def test_the_nearest_to_trouble(make_operation, make_verdicts, others, nearest):
    found = nearest_to_trouble(make_verdicts("p", *(make_operation(*other) for other in others)))
    assert found is not None
    assert found.operation == nearest


def test_what_decides_nothing_is_not_near_trouble(make_operation, make_verdicts):
    point = make_verdicts("p", make_operation("a", "REGRESSION", primary=False))
    assert nearest_to_trouble(point) is None


def test_the_worst_paired_regression_is_told_and_the_others_are_counted(
    make_operation, make_verdicts, make_report
):
    report = make_report(
        make_verdicts("u", make_operation("save", "REGRESSION", 3.0), mode="unpaired"),
        make_verdicts("p", make_operation("save", "REGRESSION", 1.2)),
        make_verdicts("q", make_operation("load", "REGRESSION", 1.4), make_operation("save")),
    )
    said = headline(report)
    assert said.startswith("load takes [1.345–1.457] times as long in q, best guess 1.400x.")
    assert "In all, 3 primary operations regressed, in 3 of 3 points." in said
    assert said.endswith(
        "Where nothing differs, at most 5 % of such runs of 2 points have a REGRESSION; "
        "`gate.family: suite` keeps it at 2.5 % of runs."
    )


@pytest.mark.parametrize(
    ("family", "points", "said"),
    [
        ("point", 1, ""),
        ("point", 100, "such a run of 100 points has up to 2.5 REGRESSION on average"),
        ("suite", 100, "at most 2.5 % of such runs have a REGRESSION."),
    ],
)
def test_a_regression_of_a_run_says_how_many_are_false(
    make_operation, make_verdicts, make_report, family, points, said
):
    slow = [make_verdicts(str(n), make_operation("save", "REGRESSION")) for n in range(points)]
    found = headline(make_report(*slow, gate=GateConfig(family=family)))
    assert said in found
    assert ("Where nothing differs" in found) == bool(said)


def test_a_pass_with_a_floor_rules_out_the_larger_of_both_limits(
    make_operation, make_verdicts, make_report
):
    point = make_verdicts("p", make_operation("save"))
    said = headline(make_report(point, gate=GateConfig(min_effect_s=0.002)))
    assert said.startswith(
        "A typical slow-down of 15 % or more that is 2 ms or more as well is ruled"
    )


def test_a_pass_with_several_margins_states_none(make_operation, make_verdicts, make_report):
    point = make_verdicts("p", make_operation("save"), make_operation("load"))
    report = make_report(point, gate=GateConfig(metrics={"load": {"margin": 0.3}}))
    assert headline(report).startswith("A typical slow-down as large as its margin is ruled out")


def test_no_verdict_is_said_to_be_no_pass(make_operation, make_verdicts, make_report):
    report = make_report(
        make_verdicts("a"),
        make_verdicts("p", make_operation("save", "INCONCLUSIVE", 1.06)),
        make_verdicts("f", make_operation("save", "INCONCLUSIVE", None), failed=True),
    )
    assert headline(report) == (
        "2 of 3 points have no verdict, which is not a pass. In 1 point an arm failed. "
        "The highest ratio is within [1.018–1.103], best guess 1.060x (save)."
    )


def test_a_point_without_operations_is_told_of(make_verdicts, make_report):
    point = make_verdicts().model_copy(update={"operations": (), "word": "INCONCLUSIVE"})
    assert headline(make_report(point)).startswith("1 of 1 point has no verdict")


def test_a_point_without_a_partner_is_told_with_what_differs():
    found = Unmatched(side="baseline", point="p 12", differs=("a: 1, there 2", "mesh: x"))
    assert unmatched_line(found) == (
        "only in the baseline: p 12 (the nearest point of the other side differs in "
        "a: 1, there 2; mesh: x)"
    )
