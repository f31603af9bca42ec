"""Arms of a comparison from flags of the command line."""

import pytest

from orbax_bench_core.cli.arm_flags import with_arms
from orbax_bench_core.config import parse_suite
from orbax_bench_core.errors import UserError

SUITE = "suite_name: s\nbenchmarks:\n- {generator: g, options: {}}\n"


def loaded(extra=""):
    return parse_suite(SUITE + extra, "suite.yaml")


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
        ("", ["=1"], [], False, "--baseline =1: expected KEY=VALUE"),
        ("arms: {}\n", [], [], True, "arms of its own"),
    ],
)
def test_flags_that_make_no_arms_are_refused(extra, baseline, candidate, same, message):
    with pytest.raises(UserError, match=message):
        with_arms(loaded(extra), baseline, candidate, same=same)


def test_a_suite_with_arms_needs_no_flags():
    suite = loaded("arms: {}\n")
    assert with_arms(suite, [], [], same=False) is suite


def test_a_suite_beside_itself_has_a_worker_per_slot_unless_it_says_otherwise():
    found = with_arms(loaded(), [], [], same=True).suite
    assert (found.gate.lives, found.arms.baseline) == ("always", found.arms.candidate)
    kept = with_arms(loaded("gate: {lives: auto}\n"), [], [], same=True).suite
    assert kept.gate.lives == "auto"


def test_a_suite_beside_itself_has_two_equal_environments():
    extra = "environments: [{name: a, requirements: [x==1]}]\n"
    found = with_arms(loaded(extra), [], [], same=True).suite
    names = (found.arms.baseline.environment, found.arms.candidate.environment)
    assert names == ("a", "a-again")
    assert len({found.environment(name).identity for name in names}) == 1


def test_a_wrong_flag_of_the_baseline_is_named_as_it_was_given(orbax_bench, write_suite, tmp_path):
    flags = ("-o", tmp_path / "out", "--no-lock", "-b", "use_ocdbt=perhaps")
    done = orbax_bench("ab", write_suite(), *flags)
    message = "expected true or false, got 'perhaps'"
    assert (done.code, done.err) == (2, f"error: --baseline use_ocdbt=perhaps: {message}\n")
