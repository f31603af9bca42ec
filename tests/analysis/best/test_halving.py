"""Looks of a search, and how surely a point is near the best."""

import numpy as np

from orbax_bench_core.analysis.best import look, separation


def logs(means, rounds, cv=0.05):
    noise = np.random.default_rng(1).normal(0, cv, (rounds, len(means)))
    return np.array(means) + noise + np.linspace(0, 1, rounds)[:, None]


def test_points_far_behind_are_dropped_and_the_faster_half_stays():
    means = [0.0, 0.01, 0.02, 0.03, 1.0, 1.1, 1.2, 1.3]
    seen = look(logs(means, 3), 8)
    assert seen.keep == (0, 1, 2, 3)
    assert not seen.ended


def test_at_most_half_are_dropped_at_once():
    seen = look(logs([0.0, 1.0, 1.0, 1.0, 1.0, 1.0], 3), 6)
    assert len(seen.keep) == 3


def test_nothing_is_dropped_that_may_be_better():
    seen = look(logs([0.0, 0.05, 0.1, 0.15], 3, cv=0.3), 4)
    assert seen.keep == (0, 1, 2, 3)


def test_points_as_good_as_each_other_end_a_search():
    assert look(logs([0.0, 0.0, 0.0, 0.0], 30, cv=0.02), 4).ended


def test_more_noise_needs_more_rounds():
    needed = [separation(np.zeros(4), 0, logs([0.0] * 4, 4, cv)).needed for cv in (0.1, 0.2, 0.4)]
    assert needed == sorted(needed)
    assert needed[0] < needed[2]


def test_the_rounds_that_are_missing_bring_the_risk_down():
    behind, few = np.array([0.0, 0.02, 0.1]), logs([0.0, 0.02, 0.1], 5, cv=0.2)
    first = separation(behind, 0, few)
    many = np.vstack([few - few.mean(axis=0)] * 200)[: first.needed] + behind
    assert first.risk > 0.05
    assert first.missing > 0
    assert separation(behind, 0, many).risk < 0.06


def test_a_single_round_leaves_everything_unknown():
    found = separation(np.zeros(3), 0, logs([0.0] * 3, 1))
    assert (found.risk, found.needed, found.missing) == (None, None, None)
