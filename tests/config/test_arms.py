"""Arms and environments in a suite."""

import pytest

ENVIRONMENTS = "environments:\n- {name: old, requirements: [a==1]}\n"


@pytest.mark.parametrize(
    ("extra", "key", "message"),
    [
        ("arms: {basline: {}}\n", "arms.basline", "did you mean 'baseline'?"),
        ("arms: {baseline: {option: {}}}\n", "arms.baseline.option", "did you mean 'options'?"),
        (
            ENVIRONMENTS + "arms: {baseline: {environment: odl}}\n",
            "arms.baseline.environment",
            "did you mean 'old'?",
        ),
        (
            "arms: {baseline: {environment: old}}\n",
            "arms.baseline.environment",
            "define it under `environments`",
        ),
        ("environments:\n- {name: a}\n", "environments[0]", "either requirements or an interp"),
        (
            "environments:\n- {name: a, interpreter: p}\n- {name: a, interpreter: q}\n",
            "environments",
            "each name may be used once",
        ),
    ],
)
def test_a_mistake_is_named(only_problem, extra, key, message):
    problem = only_problem(extra)
    assert problem.key == key
    assert message in problem.message


def test_arms_and_environments_are_part_of_what_a_suite_is(accept):
    suites = [
        accept(""),
        accept("arms: {}\n"),
        accept("arms: {candidate: {options: {a: 1}}}\n"),
        accept(ENVIRONMENTS),
    ]
    assert len({suite.identity for suite in suites}) == len(suites)


def test_how_it_is_judged_is_not_part_of_what_a_suite_is(accept):
    assert accept("gate: {alpha: 0.05}\n").identity == accept("").identity
