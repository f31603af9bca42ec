"""The p-value is that of counting every order of the arms, one by one."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from orbax_bench_core.gate import rank_test
from orbax_bench_core.gate.blocks import Blocks, random_labels
from orbax_bench_core.gate.rank_test import centred_statistic, p_values


def every_order(blocks, slots, chosen):
    """Returns every assignment of the candidate to slots."""
    rows = [
        [slot in picked for slot in range(slots)]
        for picked in itertools.combinations(range(slots), chosen)
    ]
    return [np.array(order) for order in itertools.product(rows, repeat=blocks)]


def by_hand(logs, labels, shift):
    """Returns both p-values by the definition: shift, align, rank, and count all orders."""
    shifted = logs - shift * labels
    aligned = (shifted - np.median(shifted, axis=1, keepdims=True)).round(10)
    ranks = rankdata(aligned).reshape(logs.shape)
    totals = [ranks[order].sum() for order in every_order(*logs.shape, labels[0].sum())]
    statistic = ranks[labels].sum()
    return np.mean(np.array(totals) >= statistic), np.mean(np.array(totals) <= statistic)


def labelled(rng, blocks, slots, chosen):
    return rng.random((blocks, slots)).argsort(axis=1) < chosen


@pytest.mark.parametrize("shift", [0.0, 0.1, -0.3])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    ("blocks", "slots", "chosen"),
    [(2, 4, 2), (3, 4, 2), (4, 4, 2), (5, 2, 1), (2, 6, 3), (3, 3, 1)],
)
def test_it_is_what_counting_gives(rng, blocks, slots, chosen, ties, shift):
    logs = rng.standard_normal((blocks, slots)).round(0 if ties else 6)
    labels = labelled(rng, blocks, slots, chosen)
    found = p_values(Blocks(logs=logs, candidate=labels), shift)
    assert found == pytest.approx(by_hand(logs, labels, shift), abs=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_the_level_is_exact_over_all_orders(rng, ties):
    logs = rng.standard_normal((3, 4)).round(0 if ties else 6)
    found = np.array(
        [p_values(Blocks(logs=logs, candidate=order), 0.0)[0] for order in every_order(3, 4, 2)]
    )
    for level in np.unique(found):
        assert np.mean(found <= level + 1e-12) == pytest.approx(level)


def test_values_far_apart_in_every_block_are_as_improbable_as_can_be():
    logs = np.array([[0.0, 0.1, 5.0, 5.2]] * 5)
    blocks = Blocks(logs=logs, candidate=logs > 1)
    assert p_values(blocks, 0.0) == pytest.approx((6.0**-5, 1.0))


def test_all_equal_is_no_surprise_either_way():
    blocks = Blocks(logs=np.zeros((5, 4)), candidate=np.array([[True, False] * 2] * 5))
    assert p_values(blocks, 0.0) == pytest.approx((1.0, 1.0))


def test_rounding_breaks_no_ties():
    times = np.array([[0.1, 0.2, 0.3, 0.4], [0.3, 0.6, 0.9, 1.2], [0.7, 1.4, 2.1, 2.8]])
    blocks = Blocks(logs=np.log(times), candidate=times > 0)
    assert np.unique(rank_test.doubled_ranks(blocks, 0.0), axis=0).shape == (1, 4)


@pytest.fixture
def many(rng):
    labels = random_labels(20, rng)
    return Blocks(logs=rng.standard_normal((20, 4)) + 0.3 * labels, candidate=labels)


def test_random_orders_stand_in_for_all(many, monkeypatch):
    exact = p_values(many, 0.0)
    monkeypatch.setattr(rank_test, "EXACT_BLOCKS", 19)
    drawn = p_values(many, 0.0, draws=19_999)
    assert drawn == pytest.approx(exact, abs=4 * np.sqrt(0.25 / 20_000))


def test_random_orders_never_give_a_p_value_of_zero(monkeypatch):
    monkeypatch.setattr(rank_test, "EXACT_BLOCKS", 4)
    logs = np.array([[0.0, 0.1, 5.0, 5.2]] * 20)
    assert p_values(Blocks(logs=logs, candidate=logs > 1), 0.0, draws=999)[0] == 1 / 1000


@pytest.mark.parametrize("exact", [19, 20])
def test_the_same_seed_gives_the_same_p_value(many, monkeypatch, exact):
    monkeypatch.setattr(rank_test, "EXACT_BLOCKS", exact)
    assert p_values(many, 0.0, seed=3) == p_values(many, 0.0, seed=3)


def test_the_seed_draws_the_orders(many, monkeypatch):
    monkeypatch.setattr(rank_test, "EXACT_BLOCKS", 4)
    assert len({p_values(many, 0.0, seed=seed) for seed in range(8)}) > 1


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(-5, 5), min_size=4, max_size=4, unique=False),
        min_size=2,
        max_size=6,
    ),
    st.lists(st.floats(-12, 12), min_size=2, max_size=10),
)
def test_the_statistic_never_grows_with_the_shift(rows, shifts):
    candidate = np.array([[True, False, False, True]] * len(rows))
    blocks = Blocks(logs=np.array(rows, dtype=float), candidate=candidate)
    found = [centred_statistic(blocks, shift) for shift in sorted(shifts)]
    assert found == sorted(found, reverse=True)
