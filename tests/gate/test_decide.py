"""One series of times, one verdict; it changes with the data only as it must."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate import decide, random_labels

RULE = GateRule()


def test_a_slow_candidate_is_a_regression(paired):
    found = decide(*paired(30, ratio=1.3))
    assert (found.word, found.settled, found.look, found.operations) == ("REGRESSION", True, 0, 10)


def test_identical_arms_pass(paired):
    found = decide(*paired(30))
    assert (found.word, found.settled, found.more_blocks) == ("PASS", True, 0)


def test_a_faster_candidate_passes(paired):
    found = decide(*paired(5, ratio=0.5))
    assert found.word == "PASS"
    assert found.high < 0.6


def test_noise_that_hides_the_answer_is_inconclusive_with_what_it_would_take(paired):
    found = decide(*paired(30, ratio=1.08, sigma=0.5))
    assert (found.word, found.settled) == ("INCONCLUSIVE", False)
    assert (found.look, found.operations) == (3, 60)
    assert found.detectable > 0.2
    assert found.more_blocks > 10


def test_after_a_verdict_nothing_else_is_reported(paired):
    times, labels = paired(30, ratio=1.3)
    assert decide(times, labels) == decide(times[:5], labels[:5])


def test_between_looks_the_estimate_has_all_data_and_the_verdict_those_of_the_look(paired):
    times, labels = paired(9, ratio=1.08, sigma=0.3)
    at_look, now = decide(times[:5], labels[:5]), decide(times, labels)
    assert (now.word, now.look, now.p_regression) == ("INCONCLUSIVE", 0, at_look.p_regression)
    assert now.operations == 18
    assert now.high - now.low < at_look.high - at_look.low


def test_before_the_first_look_it_says_that_it_is_too_early(paired):
    found = decide(*paired(4, ratio=2.0))
    assert found.reason == "too early: 8 operations per arm, and the first look is at 10"
    assert (found.word, found.look, found.more_blocks) == ("INCONCLUSIVE", None, 1)


def test_two_blocks_are_too_few_for_an_interval(paired):
    found = decide(*paired(2))
    assert found.reason.endswith("2 blocks are too few for a 95 % interval")
    assert (found.low, found.high) == (None, None)


@pytest.mark.parametrize("times", [None, "x", [], [[1.0]], {}, object(), [[1, 2, 3, 0]] * 5])
def test_bad_input_is_inconclusive_with_a_reason(times):
    found = decide(times, [[True, True, False, False]] * 5)
    assert found.word == "INCONCLUSIVE"
    assert found.reason
    assert (found.ratio, found.p_regression, found.p_pass) == (None, None, None)


def test_data_without_any_noise_are_judged():
    labels = np.array([[True, False, True, False]] * 5)
    found = decide(np.ones((5, 4)), labels)
    assert found.word == "PASS"
    assert (found.low, found.ratio, found.high) == pytest.approx((1.0, 1.0, 1.0), abs=1e-6)


def test_throughput_that_falls_is_a_regression(paired):
    times, labels = paired(10, ratio=1.3)
    assert decide(1 / times, labels, better="higher").word == "REGRESSION"
    assert decide(1 / times, labels).word == "PASS"


def test_throughput_is_judged_exactly_as_the_time_behind_it(paired):
    times, labels = paired(10, ratio=1.05, sigma=0.2)
    rate, time = decide(1 / times, labels, better="higher"), decide(times, labels)
    assert rate.model_dump() == pytest.approx(time.model_dump())


def test_the_rule_decides_what_counts(paired):
    times, labels = paired(10, ratio=1.3)
    assert decide(times, labels, GateRule(tolerance=0.5, margin=0.9)).word == "PASS"


series = st.tuples(
    st.integers(0, 2**32 - 1),
    st.sampled_from([3, 5, 8, 10]),
    st.sampled_from([0.7, 1.0, 1.04, 1.1, 1.3]),
    st.sampled_from([0.01, 0.05, 0.3]),
)
PROPERTY = settings(max_examples=10, deadline=None)


def made(series):
    seed, blocks, ratio, sigma = series
    rng = np.random.default_rng(seed)
    labels = random_labels(blocks, rng)
    return np.exp(sigma * rng.standard_normal(labels.shape) + math.log(ratio) * labels), labels, rng


def same(one, other):
    assert (one.word, one.look, one.settled) == (other.word, other.look, other.settled)
    fields = {"ratio", "low", "high", "p_regression", "p_pass"}
    found = other.model_dump(include=fields, exclude_none=True)
    assert one.model_dump(include=fields, exclude_none=True) == pytest.approx(found, rel=1e-4)


@PROPERTY
@given(series)
def test_the_same_data_give_the_same_verdict(series):
    times, labels, _ = made(series)
    assert decide(times, labels, seed=1) == decide(times.copy(), labels.copy(), seed=1)


@PROPERTY
@given(series)
def test_the_order_of_slots_changes_nothing(series):
    times, labels, rng = made(series)
    order = rng.random(times.shape).argsort(axis=1)
    moved = [np.take_along_axis(table, order, axis=1) for table in (times, labels)]
    same(decide(*moved), decide(times, labels))


@PROPERTY
@given(series)
def test_the_order_of_blocks_within_a_look_changes_nothing(series):
    times, labels, rng = made(series)
    order = [*rng.permutation(min(5, len(times))), *range(5, len(times))]
    same(decide(times[order], labels[order]), decide(times, labels))


@PROPERTY
@given(series, st.sampled_from([1e-6, 0.01, 1024.0, 3600.0]))
def test_the_unit_of_time_changes_nothing(series, unit):
    times, labels, _ = made(series)
    same(decide(unit * times, labels), decide(times, labels))


@PROPERTY
@given(series)
def test_a_machine_that_is_slower_in_some_blocks_changes_nothing(series):
    times, labels, rng = made(series)
    same(decide(times * rng.uniform(0.5, 2, (len(times), 1)), labels), decide(times, labels))


@PROPERTY
@given(series)
def test_swapping_the_arms_inverts_the_ratio_and_its_interval(series):
    times, labels, _ = made(series)
    late = GateRule(looks=(40,))
    one, other = decide(times, labels, late), decide(times, ~labels, late)
    assert [other.ratio, other.low, other.high] == pytest.approx(
        [1 / one.ratio, 1 / one.high, 1 / one.low], rel=1e-4
    )


@PROPERTY
@given(series)
def test_a_regression_with_its_arms_swapped_is_none(series):
    times, labels, _ = made(series)
    words = {decide(times, labels).word, decide(times, ~labels).word}
    assert words != {"REGRESSION"}


@PROPERTY
@given(series, st.sampled_from([1.1, 1.5]))
def test_a_slower_candidate_never_looks_better(series, factor):
    times, labels, _ = made(series)
    once = GateRule(looks=(2 * len(times),))
    slower = times * np.where(labels, factor, 1.0)
    before, after = decide(times, labels, once), decide(slower, labels, once)
    assert after.ratio == pytest.approx(factor * before.ratio, rel=1e-5)
    assert after.p_regression <= before.p_regression + 1e-9
    assert after.p_pass >= before.p_pass - 1e-9


def test_rules_that_are_part_of_a_config_are_rules(paired):
    from orbax_bench_core.config import GateConfig

    times, labels = paired(10)
    assert decide(times, labels, GateConfig()) == decide(times, labels, RULE)
