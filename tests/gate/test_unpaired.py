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
        (3.0, WILD, "REGRESSION"),
    ],
)
def test_the_past_says_what_stands_out(ratio, past, word):
    found = decide_unpaired(ONE, run(ratio), past)
    assert (found.word, found.ratio) == (word, pytest.approx(ratio))


def test_the_threshold_is_what_one_more_past_ratio_would_seldom_exceed():
    # mean + t(.99, 4) s sqrt(1 + 1/5), with s the sample standard deviation
    expected = 0.0 + 3.746947 * math.sqrt(0.05) * math.sqrt(1.2)
    found = decide_unpaired(ONE, ONE, WILD)
    assert found.detectable == pytest.approx(math.expm1(expected), rel=1e-5)


def test_a_past_that_always_rose_raises_the_threshold_and_for_throughput_a_past_that_fell():
    risen = [0.3, 0.31, 0.29, 0.3]
    assert decide_unpaired(ONE, run(1.3), risen).word == "PASS"
    assert decide_unpaired(ONE, run(1.3), [-value for value in risen]).word == "REGRESSION"
    fallen = decide_unpaired(ONE, run(1 / 1.3), [-value for value in risen], better="higher")
    assert fallen.word == "PASS"


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "most"), [("normal", 0.01), ("t3", 0.025)])
def test_false_alarms_with_four_past_ratios(noise, most):
    rng = np.random.default_rng(5)
    draw = rng.standard_normal if noise == "normal" else lambda size: rng.standard_t(3, size)
    rule = GateRule(tolerance=0.0, margin=1e-9)
    false = sum(
        decide_unpaired([1.0], [math.exp(now)], past, rule).word == "REGRESSION"
        for *past, now in 0.2 * draw((3000, 5))
    )
    assert false <= 3000 * most + 3 * math.sqrt(3000 * most)


def test_the_threshold_is_never_below_the_margin():
    found = decide_unpaired(ONE, ONE, QUIET, GateRule(margin=0.4))
    assert found.detectable == pytest.approx(0.4)


NEEDED = "and at least 4 are needed to tell a change from a day"


@pytest.mark.parametrize(
    ("past", "reason"),
    [
        ([], f"cannot tell: no past runs, {NEEDED}"),
        ([0.1], f"cannot tell: only 1 past ratio(s), {NEEDED}"),
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
