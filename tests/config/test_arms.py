"""Arms and environments in a suite, and arms from a command line."""

import pytest

from orbax_bench_core.cli.arm_flags import with_arms
from orbax_bench_core.config.errors import UserError
from orbax_bench_core.config.load import parse_suite

SUITE = "suite_name: s\nbenchmarks:\n- {generator: g, options: {}}\n"
ENVIRONMENTS = "environments:\n- {name: old, requirements: [a==1]}\n"


def loaded(extra=""):
    return parse_suite(SUITE + extra, "suite.yaml")


def test_an_empty_block_compares_the_suite_with_itself(accept):
    suite = accept("arms: {}\n")
    assert suite.arm("baseline") == suite.arm("candidate")


def test_an_arm_names_an_environment(accept):
    suite = accept(ENVIRONMENTS + "arms: {baseline: {environment: old}}\n")
    assert suite.environment(suite.arm("baseline").environment).requirements == ("a==1",)
    assert suite.environment(suite.arm("candidate").environment) is None


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


def test_overrides_read_as_a_line(accept):
    arm = accept("arms: {candidate: {options: {use_ocdbt: false}, processes: 2}}\n").arm(
        "candidate"
    )
    assert str(arm) == "use_ocdbt=false, processes=2"


def test_flags_give_a_suite_arms():
    found = with_arms(loaded(), [], ["use_ocdbt=false", "processes=2"], same=False).suite
    assert found.arm("candidate").options == {"use_ocdbt": False}
    assert found.arm("candidate").processes == 2
    assert found.arm("baseline").options == {}


def test_what_flags_add_is_in_the_text_so_that_another_process_reads_it_too():
    text = with_arms(loaded(), ["a=1"], ["a=[2]"], same=False).text
    assert parse_suite(text).suite.arm("candidate").options == {"a": [2]}
    assert text.startswith(SUITE)


@pytest.mark.parametrize(
    ("extra", "baseline", "candidate", "same", "message"),
    [
        ("", [], [], False, "nothing to compare"),
        ("", [], ["a"], False, "expected KEY=VALUE"),
        ("", [], ["a=1"], True, "leave out the arms"),
        ("arms: {}\n", [], ["a=1"], False, "arms of its own"),
        ("", [], ["environment=new"], False, "unknown environment 'new'"),
    ],
)
def test_flags_that_make_no_arms_are_refused(extra, baseline, candidate, same, message):
    with pytest.raises(UserError, match=message):
        with_arms(loaded(extra), baseline, candidate, same=same)


def test_a_suite_with_arms_needs_no_flags():
    suite = loaded("arms: {}\n")
    assert with_arms(suite, [], [], same=False) is suite
