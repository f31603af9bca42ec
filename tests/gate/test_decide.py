"""Words that doubts withdraw, and words of several parts together."""

import itertools

import pytest

from orbax_bench_core.gate import Decision, decide, together
from orbax_bench_core.gate.decide import VOIDS

DECIDED = {
    "PASS": Decision(word="PASS", settled=True),
    "slower": Decision(word="REGRESSION", settled=True),
    "fails": Decision(word="REGRESSION", endpoint="failures", reason="9 of 10", settled=True),
    "open": Decision(word="INCONCLUSIVE", reason="too early", next_look=20),
}
EITHER = {"PASS", "slower", "fails"}
WITHDRAWN = {
    "arm_stopped": {"PASS"},
    "other_surroundings": EITHER,
    "missing": {"PASS"},
    "storage": {"PASS", "slower"},
    "store_answers": EITHER,
    "unknown_primary": {"PASS"},
    "carry_over": {"PASS", "slower"},
}
"""Which decisions each doubt withdraws, in the order of precedence."""


def test_every_doubt_is_in_this_table_and_in_this_order():
    assert list(WITHDRAWN) == list(VOIDS)


@pytest.mark.parametrize("decided", DECIDED)
@pytest.mark.parametrize("count", range(len(WITHDRAWN) + 1))
def test_a_word_stands_unless_a_doubt_withdraws_it(decided, count):
    found = DECIDED[decided]
    for doubts in itertools.combinations(WITHDRAWN, count):
        judged = decide(found, {doubt: f"because of {doubt}" for doubt in doubts})
        if not any(decided in WITHDRAWN[doubt] for doubt in doubts) and decided != "open":
            assert judged == found
        elif doubts:
            assert judged.word == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("doubts", "endpoint", "reason", "next_look"),
    [
        (["missing"], "time", "missing", 20),
        (["arm_stopped", "storage"], "storage", "storage", None),
        (["storage", "unknown_primary"], "missing", "unknown_primary", None),
    ],
)
def test_the_last_doubt_is_told_and_one_that_blocks_cannot_mend_ends_a_run(
    doubts, endpoint, reason, next_look
):
    judged = decide(DECIDED["open"], {doubt: doubt for doubt in doubts})
    assert (judged.endpoint, judged.reason, judged.next_look) == (endpoint, reason, next_look)
    assert judged.settled == (next_look is None)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (["PASS", "PASS"], "PASS"),
        (["PASS", "INCONCLUSIVE"], "INCONCLUSIVE"),
        (["INCONCLUSIVE", "REGRESSION"], "REGRESSION"),
        (["PASS", "LEAK"], "LEAK"),
        ([], "INCONCLUSIVE"),
    ],
)
def test_words_of_several_parts(given, word):
    assert together(given) == word
