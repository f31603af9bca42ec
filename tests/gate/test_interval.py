"""The ratio balances the ranks, and its interval is what the verdict's tests do not reject."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate import random_labels
from orbax_bench_core.gate.blocks import Blocks, read_blocks
from orbax_bench_core.gate.interval import interval
from orbax_bench_core.gate.location import judge_times
from orbax_bench_core.gate.looks import Schedule
from orbax_bench_core.gate.rank_test import centred_statistics, log_ratio, p_values

RULE = GateRule()


def ends(series, rule=RULE):
    """Returns the outcome and its interval, on the data of the last look that they reach."""
    schedule = Schedule.of(rule, series.per_life)
    look = schedule.reached(len(series)) - 1
    used = series.first(schedule.blocks(look))
    outcome = judge_times({"save": used}, {"save": rule}, look)["save"]
    return used, outcome, interval(used, rule, outcome)


def test_without_noise_the_ratio_is_exact(blocks):
    assert math.exp(log_ratio(blocks(5, ratio=1.25, sigma=0.0))) == pytest.approx(1.25, abs=1e-6)


def test_without_noise_the_interval_is_the_ratio(blocks):
    _, _, found = ends(blocks(5, ratio=1.25, sigma=0.0))
    assert found == pytest.approx((1.25, 1.25), abs=1e-5)


def test_the_ratio_balances_the_ranks(blocks):
    data = blocks(9, ratio=1.3, sigma=0.3)
    centre = log_ratio(data)
    below, above = centred_statistics(data, [centre - 0.02, centre + 0.02])
    assert below >= 0 >= above


def test_the_interval_ends_where_the_tests_of_the_verdict_begin_to_reject(blocks):
    used, outcome, found = ends(blocks(10, per_life=2, ratio=1.08, sigma=0.4))
    assert outcome.word == "INCONCLUSIVE"
    low, high = math.log(found[0]), math.log(found[1])
    margin = 0.02 * (high - low)
    assert p_values(used, low)[0] <= outcome.alpha < p_values(used, low + margin)[0]
    assert p_values(used, high)[1] <= outcome.pass_alpha < p_values(used, high - margin)[1]


def test_where_arms_share_a_worker_it_holds_what_a_job_may_pay(blocks):
    _, outcome, (low, high) = ends(blocks(30, ratio=1.08, sigma=0.2))
    assert high == pytest.approx(
        math.exp(outcome.job.centre + outcome.job.reach(outcome.pass_alpha))
    )
    assert low < 1.08 < high
    assert outcome.word != "REGRESSION"
    assert low <= math.exp(outcome.job.centre - outcome.job.reach(outcome.alpha))


def test_a_regression_over_processes_is_as_sure_as_they_let_it_be(paired):
    series = read_blocks(*paired(20, ratio=1.6), per_process=2)
    _, outcome, (low, _) = ends(series)
    assert outcome.word == "REGRESSION"
    test = outcome.processes
    assert low == pytest.approx(math.exp(test.centre - test.reach(outcome.alpha)))


def test_an_end_that_disagrees_with_the_word_is_moved_to_its_bound(blocks):
    """P-values need not fall steadily with the ratio."""
    used, outcome, _ = ends(blocks(10, per_life=2, ratio=1.08, sigma=0.4))
    tolerance, margin = 1 + RULE.tolerance, 1 + RULE.margin
    _, high = interval(used, RULE, dataclasses.replace(outcome, word="PASS"))
    assert high == math.nextafter(margin, 0.0)
    low, _ = interval(used, RULE, dataclasses.replace(outcome, word="REGRESSION"))
    assert low == math.nextafter(tolerance, math.inf)
    used, outcome, _ = ends(blocks(10, per_life=2, ratio=1.3, sigma=0.01))
    low, _ = interval(used, RULE, dataclasses.replace(outcome, word="INCONCLUSIVE"))
    assert low == tolerance


def test_few_blocks_of_lives_rule_out_nothing_below(blocks):
    rule = GateRule(looks=(12,), alpha=0.001)
    _, _, found = ends(blocks(3, per_life=2), rule)
    assert found[0] is None


def test_a_wild_value_hardly_moves_the_ratio_and_a_step_between_blocks_nothing(blocks):
    data = blocks(10, ratio=1.2, sigma=0.02)
    wild, stepped = data.logs.copy(), data.logs + np.arange(10)[:, None, None]
    wild[3, 0] += 3.0
    for logs, near in ((wild, 0.01), (stepped, 1e-5)):
        moved = Blocks(logs=logs, candidate=data.candidate, failed=data.failed)
        assert log_ratio(moved) == pytest.approx(log_ratio(data), abs=near)


def test_with_a_floor_the_interval_stays_one_of_ratios(blocks):
    _, outcome, found = ends(blocks(5, ratio=1.4, sigma=0.01), GateRule(min_effect_s=0.6))
    assert outcome.word == "PASS"
    assert found[0] < 1.4 < found[1]


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.9, 1.0, 1.03, 1.09, 1.15, 1.2]),
    st.sampled_from([0.0, 0.02, 0.1, 0.3]),
    st.sampled_from([None, 2]),
    st.sampled_from([GateRule(looks=(16,)), GateRule(looks=(8, 16), alpha=0.05, pass_alpha=0.2)]),
)
def test_the_interval_says_what_the_verdict_says(seed, ratio, sigma, per_life, rule):
    rng = np.random.default_rng(seed)
    labels = random_labels(8 // (per_life or 1), rng)
    logs = sigma * rng.standard_normal((*labels.shape, per_life or 1))
    times = np.exp(logs.round(2)) * ratio ** labels[..., None]
    found = read_blocks(times, labels)
    assert isinstance(found, Blocks)
    _, outcome, (low, high) = ends(found, rule)
    assert (low is not None and low > 1 + rule.tolerance) == (outcome.word == "REGRESSION")
    assert (high is not None and high < 1 + rule.margin) == (outcome.word == "PASS")
    assert low is None or high is None or low <= high
