"""Failures: first attempts of each slot, one family per point."""

import numpy as np
import pytest

from orbax_bench_core.analysis.verdicts import why
from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.failures import judge_failures

RULE = GateRule()
LABELS = np.array([[True, False, True, False]] * 50)


def failed(candidate=(), baseline=(), blocks=50, per_life=1):
    """Makes attempts of which the first of some blocks failed."""
    found = np.zeros((blocks, 4, per_life), dtype=bool)
    found[list(candidate), 0] = True
    found[list(baseline), 1] = True
    return found


def verdict(attempts, look=0, rule=RULE):
    blocks = (5, 10, 20, 30, 50)[look]
    return judge_failures(attempts[:blocks], LABELS[:blocks], rule, look)


def test_without_a_failure_it_passes_with_its_bound():
    found = verdict(failed())
    assert (found.word, found.attempts) == ("PASS", 10)
    assert found.bound == pytest.approx(0.259, abs=0.001)


def test_one_failure_more_is_followed_up_to_the_last_look_of_the_rule():
    found = verdict(failed([0]))
    assert found.word == "INCONCLUSIVE"
    assert (
        why(found.reason) == "1 of 10 first attempts of the candidate failed, and 0 of the baseline"
    )
    found = verdict(failed([0]), look=3)
    assert (found.word, found.attempts) == ("PASS", 60)
    assert found.bound == pytest.approx(0.077, abs=0.001)


@pytest.mark.parametrize("look", [3, 4])
def test_two_failures_more_are_no_pass_at_any_look(look):
    assert verdict(failed([0, 1]), look=look).word == "INCONCLUSIVE"


def test_as_many_failures_in_both_arms_pass():
    assert verdict(failed([0, 1, 2], [0, 1, 2])).word == "PASS"


def test_failures_of_the_baseline_alone_pass():
    assert verdict(failed([], range(5))).word == "PASS"


def test_a_candidate_that_always_fails_has_regressed_at_the_first_look():
    found = verdict(np.broadcast_to(LABELS[..., None], (50, 4, 1)))
    assert (found.word, found.attempts) == ("REGRESSION", 10)
    assert found.p_value == pytest.approx(6.0**-5)
    assert found.bound == 1


def test_the_largest_share_of_failures_is_a_condition():
    rule = GateRule(max_failures=0.1)
    assert verdict(failed(), look=2, rule=rule).word == "PASS"
    found = verdict(failed(), rule=rule)
    assert found.word == "INCONCLUSIVE"
    assert why(found.reason) == (
        "failures beyond those of the baseline in up to 26 % of attempts cannot be excluded, and "
        "max_failures is 10 %"
    )


def test_the_p_value_redraws_the_labels():
    assert verdict(failed(range(4))).p_value == pytest.approx(2.0**-4)


def test_before_the_first_look_it_is_too_early():
    found = judge_failures(failed()[:4], LABELS[:4], RULE, None)
    assert (found.word, why(found.reason)) == (
        "INCONCLUSIVE",
        "too early: 8 operations per arm, and the first look is at 10",
    )
