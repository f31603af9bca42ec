"""Against a stored baseline there is a warning at most."""

import math

import numpy as np
import pytest

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate import decide_unpaired, run_log_ratio

QUIET = [-0.01, 0.0, 0.01, 0.005, -0.005]
WILD = [-0.3, -0.1, 0.1, 0.3, 0.0]
ONE = [1.0, 1.01, 0.99]


def run(ratio):
    return [ratio * value for value in ONE]


@pytest.mark.parametrize(
    ("ratio", "past", "word"),
    [
        (1.2, QUIET, "REGRESSION"),
        (1.0, QUIET, "PASS"),
        (0.5, QUIET, "PASS"),
        (1.14, QUIET, "INCONCLUSIVE"),
        (1.2, WILD, "INCONCLUSIVE"),
        (1.0, WILD, "INCONCLUSIVE"),
        (2.0, WILD, "REGRESSION"),
    ],
)
def test_the_past_says_what_stands_out(ratio, past, word):
    found = decide_unpaired(ONE, run(ratio), past)
    assert (found.word, found.ratio) == (word, pytest.approx(ratio))


def test_the_threshold_is_three_interquartile_ranges_of_the_past():
    found = decide_unpaired(ONE, ONE, WILD)
    assert found.detectable == pytest.approx(math.expm1(3 * 0.2))


def test_the_threshold_is_never_below_the_margin():
    found = decide_unpaired(ONE, ONE, QUIET, GateRule(margin=0.4))
    assert found.detectable == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("past", "reason"),
    [
        ([], "no past runs to tell a change from a day: at least 4 are needed"),
        ([0.1], "only 1 past log ratio(s) to tell a change from a day: at least 4 are needed"),
        ([0.1, 0.2, math.nan, 0.1], "the past log ratios are not a row of finite numbers"),
    ],
)
def test_without_a_past_it_cannot_tell(past, reason):
    found = decide_unpaired(ONE, run(9.0), past)
    assert (found.word, found.reason, found.detectable) == ("INCONCLUSIVE", reason, None)
    assert found.ratio == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("baseline", "candidate", "reason"),
    [
        ([], ONE, "baseline has the shape (0,)"),
        (ONE, [1.0, 0.0], "candidate[1] is 0"),
        (ONE, [math.nan], "candidate[0] is nan"),
        ([[1.0]], ONE, "baseline has the shape (1, 1)"),
        (["x"], ONE, "baseline is not a row of numbers"),
    ],
)
def test_bad_input_is_a_reason(baseline, candidate, reason):
    found = decide_unpaired(baseline, candidate, QUIET)
    assert (found.word, found.ratio) == ("INCONCLUSIVE", None)
    assert found.reason.startswith(reason)


def test_throughput_that_halves_is_twice_the_cost():
    found = decide_unpaired(ONE, run(0.5), QUIET, better="higher")
    assert (found.word, found.ratio) == ("REGRESSION", pytest.approx(2.0))


def test_a_history_is_made_of_log_ratios_of_medians():
    assert run_log_ratio([1.0, 2.0, 9.0], [4.0, 4.0, 1.0]) == pytest.approx(math.log(2))


def test_a_history_takes_no_bad_runs():
    with pytest.raises(ValueError, match=r"the later run\[0\] is -1"):
        run_log_ratio(ONE, [-1.0])


def test_days_that_differ_as_they_always_did_seldom_raise_an_alarm():
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(300):
        days = 0.05 * rng.standard_normal(22)
        past = np.diff(days[:21])
        now = run(math.exp(days[21] - days[20]))
        false += decide_unpaired(ONE, now, past).word == "REGRESSION"
    assert false <= 12
