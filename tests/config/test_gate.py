"""The gate block: defaults as the method has them, and rules that contradict each other."""

import pytest

from orbax_bench_core.config import gate_changes


def test_the_defaults_are_those_of_the_method(accept):
    gate = accept("").gate
    assert (gate.tolerance, gate.margin, gate.alpha, gate.pass_alpha) == (0.03, 0.15, 0.01, 0.05)
    assert gate.looks == (10, 20, 40, 60)
    assert gate.primary == ("save_blocking", "save", "load")


def test_an_operation_can_have_a_rule_of_its_own(accept):
    gate = accept("gate: {metrics: {load: {margin: 0.3}}}\n").gate
    assert (gate.rule("load").tolerance, gate.rule("load").margin) == (0.03, 0.3)
    assert gate.rule("save").margin == 0.15


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("{looks: [5, 10]}", "looks must be even"),
        ("{metrics: {save: {margin: 0.01}}}", "metrics.save"),
        ("{min_effect_s: -0.1}", "min_effect_s"),
        (
            "{max_stalls: 0.01}",
            "takes 299 operations per arm, and the last look is at 100 (5/3 of the last of looks)",
        ),
        ("{max_failures: 0.02}", "takes 149 operations per arm, and the last look is at 100"),
        ("{limit_minutes: -1}", "limit_minutes"),
        ("{operations_per_life: 0}", "operations_per_life"),
        ("{lives: never}", "lives"),
    ],
)
def test_rules_that_contradict_each_other_are_refused(only_problem, block, message):
    problem = only_problem(f"gate: {block}\n")
    assert message in str(problem)
    assert problem.line == 4


def test_seconds_that_do_not_matter_can_be_those_of_one_operation(accept):
    gate = accept("gate: {min_effect_s: 0.001, metrics: {load: {min_effect_s: 0.002}}}\n").gate
    assert (gate.rule("save").min_effect_s, gate.rule("load").min_effect_s) == (0.001, 0.002)


@pytest.mark.parametrize(
    ("looks", "per_life", "expected", "last"),
    [
        ("[10, 20, 40, 60]", 1, (10, 20, 40, 60), 100),
        ("[10, 20, 40, 60]", 2, (16, 24, 40, 60), 100),
        ("[10, 20, 40, 60]", 3, (24, 36, 48, 72), 120),
        ("[2, 4]", 1, (2, 4), 8),
        ("[2, 4]", 2, (4,), 8),
        ("[10, 30]", 2, (12, 32), 56),
    ],
)
def test_looks_are_whole_blocks(accept, looks, per_life, expected, last):
    gate = accept(f"gate: {{looks: {looks}}}\n").gate
    assert (gate.looks_of(per_life), gate.looks_at_all(per_life)) == (expected, (*expected, last))


def test_the_fingerprint_is_of_the_rules_and_not_of_how_they_are_written(accept):
    plain = accept("").gate
    written = accept(
        "gate: {margin: 0.15, looks: [10, 20, 40, 60], metrics: {load: {margin: 0.15}}}\n"
    ).gate
    turned = accept("gate: {metrics: {load: {margin: 0.15}}, looks: [10, 20, 40, 60]}\n").gate
    assert plain.fingerprint == written.fingerprint == turned.fingerprint
    assert len(plain.fingerprint) == 64


@pytest.mark.parametrize(
    "block",
    [
        "{margin: 0.3}",
        "{seed: 1}",
        "{lives: always}",
        "{primary: [save]}",
        "{metrics: {load: {margin: 0.3}}}",
        "{min_effect_s: 0.001}",
    ],
)
def test_other_rules_have_another_fingerprint(accept, block):
    assert accept(f"gate: {block}\n").gate.fingerprint != accept("").gate.fingerprint


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("{}", ""),
        ("{margin: 0.3}", "margin 15 % -> 30 %"),
        (
            "{min_effect_s: 0.002, max_stalls: 0.1}",
            "min_effect_s 0 s -> 0.002 s, max_stalls auto -> 10 %",
        ),
        ("{looks: [10, 20]}", "looks 10 20 40 60 -> 10 20"),
        ("{metrics: {load: {margin: 0.2}}}", "metrics.load.margin 15 % -> 20 %"),
    ],
)
def test_what_differs_between_rules_is_named(accept, block, said):
    assert gate_changes(accept("").gate, accept(f"gate: {block}\n").gate) == said
