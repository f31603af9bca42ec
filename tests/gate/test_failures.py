"""Failures: first attempts of each slot, one family per point."""

import numpy as np
import pytest

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.failures import settle_failures

RULE = GateRule()
LABELS = np.array([[True, False, True, False]] * 30)


def failed(candidate=(), baseline=(), blocks=30, per_life=1):
    """Makes attempts of which the first of some blocks failed."""
    found = np.zeros((blocks, 4, per_life), dtype=bool)
    found[list(candidate), 0] = True
    found[list(baseline), 1] = True
    return found


def verdict(attempts, end=0, **options):
    return settle_failures(attempts, LABELS[: len(attempts)], RULE, end=end, **options)


def test_without_a_failure_it_passes_at_once_with_its_bound():
    found, settled = verdict(failed())
    assert (found.word, found.attempts, settled) == ("PASS", 10, True)
    assert found.bound == pytest.approx(0.259, abs=0.001)


def test_one_failure_more_is_followed_up_to_the_last_look():
    found, settled = verdict(failed([0], blocks=5))
    assert (found.word, settled) == ("INCONCLUSIVE", False)
    assert found.reason == "1 of 10 first attempts of the candidate failed, and 0 of the baseline"
    found, settled = verdict(failed([0]))
    assert (found.word, found.attempts, settled) == ("PASS", 60, True)
    assert found.bound == pytest.approx(0.077, abs=0.001)


def test_as_many_failures_in_both_arms_pass():
    found, _ = verdict(failed([0, 1, 2], [0, 1, 2]))
    assert (found.word, found.attempts) == ("PASS", 10)


def test_failures_of_the_baseline_alone_pass():
    assert verdict(failed([], range(5)))[0].word == "PASS"


def test_a_candidate_that_always_fails_has_regressed_at_the_first_look():
    always = np.broadcast_to(LABELS[..., None], (30, 4, 1))
    found, settled = verdict(always)
    assert (found.word, found.attempts, settled) == ("REGRESSION", 10, True)
    assert found.p_value == pytest.approx(6.0**-5)
    assert found.bound == 1


def test_the_largest_share_of_failures_is_a_condition():
    rule = GateRule(max_failures=0.1)
    found, settled = settle_failures(failed(), LABELS, rule, end=0)
    assert (found.word, found.attempts, settled) == ("PASS", 40, True)
    found, settled = settle_failures(failed(blocks=5), LABELS[:5], rule, end=0)
    assert (found.word, settled) == ("INCONCLUSIVE", False)
    assert found.reason == (
        "failures beyond those of the baseline in up to 26 % of attempts cannot be excluded, and "
        "max_failures is 10 %"
    )


def test_the_p_value_redraws_the_labels():
    assert verdict(failed(range(4), blocks=5))[0].p_value == pytest.approx(2.0**-4)


def test_before_the_first_look_it_is_too_early():
    found, settled = verdict(failed(blocks=4))
    assert (found.word, found.reason, settled) == ("INCONCLUSIVE", "too early", False)


@pytest.mark.parametrize(
    ("candidate", "end", "word", "settled"),
    [
        pytest.param([0, 1], 0, "INCONCLUSIVE", True, id="two more at the last look"),
        pytest.param([], None, "PASS", False, id="other things are open"),
        pytest.param([], 4, "PASS", True, id="an end after the last look"),
    ],
)
def test_all_attempts_up_to_the_last_look_count(candidate, end, word, settled):
    found, is_settled = verdict(failed(candidate), end=end)
    assert (found.word, found.attempts, is_settled) == (word, 60, settled)
