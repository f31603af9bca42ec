"""The gate block: defaults as the method has them, and rules that contradict each other."""

import pytest


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
        ("{tolerance: 0.2}", "margin 0.15 must be larger than tolerance 0.2"),
        ("{looks: [20, 10]}", "looks must ascend"),
        ("{looks: [5, 10]}", "looks must be even"),
        ("{primary: [a, b, c, d]}", "at most 3"),
        ("{metrics: {save: {margin: 0.01}}}", "metrics.save"),
    ],
)
def test_rules_that_contradict_each_other_are_refused(only_problem, block, message):
    problem = only_problem(f"gate: {block}\n")
    assert message in str(problem)
    assert problem.line == 4


def test_a_misspelt_key_is_named(only_problem):
    assert "did you mean 'alpha'?" in str(only_problem("gate: {alhpa: 0.05}\n"))
