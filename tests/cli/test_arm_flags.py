"""Arms of a comparison from flags of the command line."""

from orbax_bench_core.cli.arm_flags import with_arms
from orbax_bench_core.config import parse_suite

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


def test_a_suite_with_arms_needs_no_flags():
    suite = loaded("arms: {}\n")
    assert with_arms(suite, [], [], same=False) is suite


def test_a_suite_beside_itself_has_a_worker_per_slot_unless_it_says_otherwise():
    found = with_arms(loaded(), [], [], same=True).suite
    assert (found.gate.lives, found.arms.baseline) == ("always", found.arms.candidate)
    kept = with_arms(loaded("gate: {lives: auto}\n"), [], [], same=True).suite
    assert kept.gate.lives == "auto"
