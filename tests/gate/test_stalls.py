"""Stalls: found without the labels, counted by lives, and followed up before a PASS."""

import itertools

import numpy as np
import pytest
from scipy.stats import beta

from orbax_bench_core.analysis.verdicts import why
from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Blocks, read_blocks
from orbax_bench_core.gate.excess import Excess
from orbax_bench_core.gate.looks import Schedule
from orbax_bench_core.gate.stalls import find_stalls, judge_stalls

RULE = GateRule()


@pytest.fixture
def stalled(blocks, rng):
    """Builds blocks in which single operations of the arms stall: `stalled(10, candidate=3)`."""

    def build(count, candidate=0, baseline=0, factor=4.0, per_life=1, sigma=0.02):
        made = blocks(count, sigma=sigma, per_life=per_life)
        logs = made.logs.copy()
        for arm, stalls in ((True, candidate), (False, baseline)):
            places = np.argwhere(made.labels == arm)
            # Spread over the blocks, the first ones first.
            step = len(places) // max(1, stalls)
            for index in range(stalls):
                logs[tuple(places[index * step])] += np.log(factor)
        return Blocks(logs=logs, candidate=made.candidate, failed=made.failed)

    return build


def verdict(blocks, rule=RULE):
    """Judges at the last look that so many blocks reach."""
    schedule = Schedule.of(rule, blocks.per_life)
    look = schedule.reached(len(blocks)) - 1
    return judge_stalls(blocks.first(schedule.blocks(look)), rule, look, alpha=rule.alpha)


def by_hand(seen, labels):
    """Returns the chance of as many in the candidate, by every order of the arms."""
    scores = seen.sum(axis=2)
    rows = [np.isin(range(4), picked) for picked in itertools.combinations(range(4), 2)]
    totals = [
        scores[np.array(order)].sum() for order in itertools.product(rows, repeat=len(scores))
    ]
    return np.mean(np.array(totals) >= scores[labels].sum())


def test_where_every_attempt_failed_each_counts_as_a_stall(blocks):
    made = blocks(5)
    failed = np.repeat(made.candidate[..., None], made.logs.shape[2], axis=2)
    times = np.where(failed, np.inf, np.exp(made.logs))
    found = verdict(read_blocks(times, made.candidate))
    assert (found.candidate, found.baseline, found.operations) == (10, 0, 10)


@pytest.mark.parametrize("per_life", [1, 2])
def test_the_p_value_is_what_counting_gives(rng, blocks, per_life):
    labels = blocks(5).candidate
    seen = rng.random((5, 4, per_life)) < np.where(labels, 0.6, 0.1)[..., None]
    found = Excess.of(seen, labels)
    assert found.p_value == pytest.approx(by_hand(seen, labels))
    assert (found.candidate, found.operations) == (seen[labels].sum(), 10 * per_life)


def test_seven_stalls_against_none_are_the_fewest_that_reach_a_hundredth():
    labels = np.array([[True, False, True, False]] * 30)
    for count, chance in ((6, 2.0**-6), (7, 2.0**-7)):
        seen = np.zeros((30, 4, 1), dtype=bool)
        seen[:count, 0] = True
        assert Excess.of(seen, labels).p_value == pytest.approx(chance)


def test_a_stall_is_half_as_much_again_and_far_from_the_rest(stalled):
    assert find_stalls(stalled(10, candidate=3, factor=1.7))[0].sum() == 3
    assert find_stalls(stalled(10, candidate=3, factor=1.4))[0].sum() == 0
    seen, threshold = find_stalls(stalled(30, candidate=3, factor=1.7, sigma=0.3))
    assert seen.sum() == 0
    assert threshold > 2


def test_stalls_are_found_without_the_labels(stalled):
    made = stalled(10, candidate=3, baseline=1)
    swapped = Blocks(logs=made.logs, candidate=~made.candidate, failed=made.failed)
    np.testing.assert_array_equal(find_stalls(made)[0], find_stalls(swapped)[0])


def test_without_a_stall_the_first_look_passes_with_its_bound(stalled):
    found = verdict(stalled(5))
    assert (found.word, found.operations) == ("PASS", 10)
    assert found.bound == pytest.approx(1 - 0.05 ** (1 / 10))


def test_the_bound_is_that_of_clopper_and_pearson(stalled):
    found = verdict(stalled(5, candidate=1, baseline=1))
    assert (found.word, found.candidate, found.baseline) == ("PASS", 1, 1)
    assert found.bound == pytest.approx(beta.ppf(0.95, 2, 9))


def test_one_stall_more_goes_on_to_the_next_look(stalled):
    found = verdict(stalled(5, candidate=1))
    assert (found.word, found.look) == ("INCONCLUSIVE", 0)
    assert why(found.reason) == (
        "1 of 10 operations of the candidate stalled, and 0 of the baseline"
    )


def test_many_stalls_are_a_regression(stalled):
    found = verdict(stalled(50, candidate=20))
    assert found.word == "REGRESSION"
    assert found.candidate >= 5
    assert found.mean_ratio > 1.1


@pytest.mark.parametrize(("stalls", "word"), [(6, "INCONCLUSIVE"), (3, "PASS")])
def test_a_suspicion_passes_at_the_last_look_where_chance_explains_it(stalled, stalls, word):
    found = verdict(stalled(50, candidate=stalls))
    assert (found.word, found.operations) == (word, 100)
    assert (found.p_value <= 0.05) == (word == "INCONCLUSIVE")


def test_stalls_that_chance_explains_are_no_pass_where_the_mean_is_beyond_the_margin(stalled):
    found = verdict(stalled(50, candidate=3, factor=20))
    assert (found.word, found.operations) == ("INCONCLUSIVE", 100)
    assert why(found.reason) == (
        "3 of 100 operations of the candidate stalled, and 0 of the baseline; with them the mean "
        f"time is {found.mean_ratio:.2f}x"
    )


def test_the_largest_share_of_stalls_is_a_condition(stalled):
    found = verdict(stalled(20), GateRule(max_stalls=0.1))
    assert (found.word, found.operations) == ("PASS", 40)
    found = verdict(stalled(5), GateRule(max_stalls=0.1))
    assert found.word == "INCONCLUSIVE"
    assert why(found.reason) == (
        "stalls beyond those of the baseline in up to 26 % of operations cannot be excluded, and "
        "max_stalls is 10 %"
    )


def test_stalls_of_a_slow_place_are_no_obstacle_where_both_arms_have_them(stalled):
    found = verdict(stalled(50, candidate=8, baseline=6), GateRule(max_stalls=0.1))
    assert found.word == "PASS"
    assert found.bound > 0.1


def test_lives_are_redrawn_as_a_whole(blocks):
    made = blocks(4, sigma=0.01, per_life=2)
    logs = made.logs.copy()
    first = [tuple(place) for place in np.argwhere(made.candidate)[::2]]
    for place in first:
        logs[place] += np.log(4)
    found = verdict(Blocks(logs=logs, candidate=made.candidate, failed=made.failed, lives=True))
    # Eight stalls, but in four lives of one arm: each is in the candidate with chance 1/2.
    assert found.candidate == 8
    assert found.p_value == pytest.approx(2.0**-4)
    assert found.word == "INCONCLUSIVE"
