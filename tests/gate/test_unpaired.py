"""Against a stored baseline there is a warning, or a regression that is beyond runs."""

import itertools
import math

import numpy as np
import pytest

from orbax_bench_core.analysis.verdicts import why
from orbax_bench_core.config import GateRule
from orbax_bench_core.gate import decide_unpaired, run_log_ratio, unpaired

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


def spaced(ratio, count):
    return [ratio * (1 + place / 1000) for place in range(count)]


@pytest.mark.parametrize(("before", "now"), [(5, 5), (3, 7), (1, 99), (40, 40), (70, 70)])
def test_without_a_past_the_exact_test_decides_whatever_the_counts(before, now):
    found = decide_unpaired(spaced(1.0, before), spaced(5.8, now), [])
    assert (found.word, found.beyond_runs) == ("REGRESSION", True)
    assert found.p_regression <= 0.01
    assert f"{now} of {now} slower than all {before} of the baseline" in why(found.reason)
    assert "at the 1 % level; no past runs say how far two runs differ" in why(found.reason)


def test_too_few_for_the_level_say_what_is_known_and_how_many_more_it_needs():
    found = decide_unpaired(spaced(1.0, 3), spaced(5.8, 3), [])
    assert (found.word, found.beyond_runs) == ("INCONCLUSIVE", False)
    assert found.p_regression == pytest.approx(1 / 20)
    assert why(found.reason) == (
        "5.8x, 3 of 3 slower than all 3 of the baseline, below 5.79x ruled out at the 5 % level; "
        "no past runs say how far two runs differ, so that only beyond 2x counts; "
        "the 1 % level needs 4 more of the candidate or 5 on each side"
    )
    assert decide_unpaired(spaced(1.0, 3), spaced(5.8, 3 + 4), []).word == "REGRESSION"
    assert decide_unpaired(spaced(1.0, 3), spaced(5.8, 3 + 3), []).word == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("past", "threshold", "told"),
    [
        (
            [],
            2.0,
            "no past runs say how far two runs differ, so that only beyond 2x counts; 4 more",
        ),
        (
            [0.1],
            2.21,
            "only 1 past ratio(s) say how far two runs differ, so that only beyond 2.21x",
        ),
        ([-0.1, 0.5, 0.0], 3.3, "only 3 past ratio(s) say how far"),
    ],
)
def test_few_past_runs_allow_for_more_and_never_for_less(past, threshold, told):
    slower = decide_unpaired(spaced(1.0, 5), spaced(0.98 * threshold, 5), past)
    assert (slower.word, slower.detectable) == (
        "INCONCLUSIVE",
        pytest.approx(threshold - 1, abs=0.01),
    )
    assert told in why(slower.reason)
    found = decide_unpaired(spaced(1.0, 5), spaced(1.02 * threshold, 5), past)
    assert (found.word, found.beyond_runs) == ("REGRESSION", True)


@pytest.mark.parametrize(("ratio", "word"), [(0.5, "PASS"), (0.62, "INCONCLUSIVE")])
def test_without_a_past_only_what_is_much_faster_passes(ratio, word):
    assert decide_unpaired(spaced(1.0, 5), spaced(ratio, 5), []).word == word


def test_with_a_past_more_than_2x_is_beyond_runs_and_less_is_a_warning():
    for ratio, beyond in ((1.5, False), (2.5, True)):
        found = decide_unpaired(spaced(1.0, 5), spaced(ratio, 5), QUIET)
        assert (found.word, found.beyond_runs, found.reason) == ("REGRESSION", beyond, ())


def test_equal_times_are_no_evidence():
    found = decide_unpaired([1.0] * 6, [1.0] * 6, [])
    assert (found.word, found.p_regression) == ("INCONCLUSIVE", 1.0)
    assert "no slow-down shown" in why(found.reason)


def test_a_past_of_no_numbers_is_a_reason():
    found = decide_unpaired(ONE, run(9.0), [0.1, 0.2, math.nan, 0.1])
    reason = "past: no values that can be compared"
    assert (found.word, why(found.reason), found.detectable) == ("INCONCLUSIVE", reason, None)
    assert found.ratio == pytest.approx(9.0)


@pytest.mark.parametrize(("before", "now"), [(3, 3), (5, 4), (2, 9)])
def test_every_order_of_the_operations_is_as_likely(before, now):
    """The p-value of each place of the candidate's operations, by going through all of them."""
    logs = np.arange(before + now, dtype=float)
    counts = []
    for chosen in itertools.combinations(range(before + now), now):
        mine = logs[list(chosen)]
        others = np.delete(logs, list(chosen))
        counts.append(int((mine[:, None] > others).sum()))
    for pairs in range(before * now + 1):
        expected = np.mean([count >= pairs for count in counts])
        assert unpaired._tail(before, now, pairs) == pytest.approx(expected)


def test_beyond_many_pairs_a_normal_tail_agrees():
    exact = unpaired._tails(64, 62)
    for pairs in (2200, 2400, 2600):
        near = unpaired._tail(64, 63, round(pairs * 63 / 62))
        assert near == pytest.approx(exact[pairs], rel=0.06)


@pytest.mark.parametrize(
    ("baseline", "candidate", "reason"),
    [
        ([], ONE, "baseline: no values that can be compared; shape (0,)"),
        (ONE, [1.0, 0.0], "candidate[1] is 0"),
        (ONE, [math.nan], "candidate[0] is nan"),
        ([[1.0]], ONE, "baseline: no values that can be compared; shape (1, 1)"),
        (["x"], ONE, "baseline: no values that can be compared"),
    ],
)
def test_bad_input_is_a_reason(baseline, candidate, reason):
    found = decide_unpaired(baseline, candidate, QUIET)
    assert (found.word, found.ratio) == ("INCONCLUSIVE", None)
    assert why(found.reason).startswith(reason)


def test_throughput_that_halves_is_twice_the_cost():
    found = decide_unpaired(ONE, run(0.5), QUIET, better="higher")
    assert (found.word, found.ratio) == ("REGRESSION", pytest.approx(2.0))


def test_a_history_is_made_of_log_ratios_of_medians_and_takes_no_bad_runs():
    assert run_log_ratio([1.0, 2.0, 9.0], [4.0, 4.0, 1.0]) == pytest.approx(math.log(2))
    with pytest.raises(ValueError, match=r"unusable_value .*'now'.*-1"):
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


@pytest.mark.parametrize("base", [0.1, 0.3, 0.7, 1.1, 3.3])
def test_ties_at_the_bound_count_against_a_regression(base):
    ratio = 1 + decide_unpaired(ONE, ONE, []).detectable
    found = decide_unpaired([base] * 40, [base * ratio] * 40, [])
    assert (found.word, found.p_regression) == ("INCONCLUSIVE", pytest.approx(1.0))
