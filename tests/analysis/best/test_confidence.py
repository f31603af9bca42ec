"""How surely a point is near the best."""

import numpy as np

from orbax_bench_core.analysis.best import separation


def logs(means, rounds, cv=0.05):
    noise = np.random.default_rng(1).normal(0, cv, (rounds, len(means)))
    return np.array(means) + noise + np.linspace(0, 1, rounds)[:, None]


def test_more_noise_needs_more_rounds():
    needed = [separation(np.zeros(4), 0, logs([0.0] * 4, 4, cv)).missing for cv in (0.1, 0.2, 0.4)]
    assert needed == sorted(needed)
    assert needed[0] < needed[2]


def test_the_rounds_that_are_missing_bring_the_risk_down():
    behind, few = np.array([0.0, 0.02, 0.1]), logs([0.0, 0.02, 0.1], 5, cv=0.2)
    first = separation(behind, 0, few)
    many = np.vstack([few - few.mean(axis=0)] * 200)[: 5 + first.missing] + behind
    assert first.risk > 0.05
    assert first.missing > 0
    assert separation(behind, 0, many).risk < 0.06


def test_a_single_round_leaves_everything_unknown():
    found = separation(np.zeros(3), 0, logs([0.0] * 3, 1))
    assert (found.risk, found.missing) == (None, None)
