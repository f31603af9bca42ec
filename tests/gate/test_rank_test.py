"""The p-value is that of counting every order of the arms, one by one."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from orbax_bench_core.gate import randomisation
from orbax_bench_core.gate.blocks import Blocks, random_labels
from orbax_bench_core.gate.rank_test import centred_statistics, doubled_ranks, p_values, tail


def made(logs, labels):
    """Returns blocks of single operations, or of lives where the logs have three axes."""
    logs = np.asarray(logs, dtype=float).reshape(*np.shape(labels), -1)
    failed = np.zeros(logs.shape, bool)
    return Blocks(logs=logs, candidate=np.asarray(labels), failed=failed)


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
    found = p_values(made(logs, labels), shift)
    assert found == pytest.approx(by_hand(logs, labels, shift), abs=1e-12)


def lives_by_hand(logs, labels, shift):
    """Returns both p-values where whole lives are redrawn and operations ranked."""
    shifted = logs - shift * labels[:, :, None]
    flat = shifted.reshape(len(logs), -1)
    aligned = (flat - np.median(flat, axis=1, keepdims=True)).round(10)
    scores = rankdata(aligned).reshape(logs.shape).sum(axis=2)
    totals = [scores[order].sum() for order in every_order(*labels.shape, 2)]
    statistic = scores[labels].sum()
    return np.mean(np.array(totals) >= statistic), np.mean(np.array(totals) <= statistic)


@pytest.mark.parametrize("shift", [0.0, 0.1])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("blocks", "per_life"), [(2, 2), (3, 2), (4, 3)])
def test_with_lives_it_is_what_counting_gives(rng, blocks, per_life, ties, shift):
    logs = rng.standard_normal((blocks, 4, per_life)).round(0 if ties else 6)
    labels = random_labels(blocks, rng)
    found = p_values(made(logs, labels), shift)
    assert found == pytest.approx(lives_by_hand(logs, labels, shift), abs=1e-12)


def test_lives_that_are_apart_are_as_improbable_as_can_be():
    logs = np.array([[[0.0, 0.1], [5.0, 5.2], [0.2, 0.3], [5.1, 5.3]]] * 4)
    found = p_values(made(logs, [[False, True, False, True]] * 4), 0.0)
    assert found == pytest.approx((1 / 1296, 1.0))


def test_lives_of_one_operation_are_operations(rng):
    logs, labels = rng.standard_normal((5, 4)), random_labels(5, rng)
    assert p_values(made(logs[..., None], labels), 0.1) == p_values(made(logs, labels), 0.1)


def test_an_offset_of_a_life_moves_with_its_label(rng):
    labels = random_labels(6, rng)
    offsets = 3 * rng.standard_normal(labels.shape)
    logs = offsets[..., None] + 0.01 * rng.standard_normal((6, 4, 2))
    single = p_values(made(offsets, labels), 0.0)
    assert p_values(made(logs, labels), 0.0) == pytest.approx(single, abs=0.1)


@pytest.mark.parametrize("share", [0.03, 0.15])
def test_a_candidate_that_takes_the_supposed_time_exactly_ranks_as_the_baseline(rng, share):
    times, labels = rng.uniform(0.01, 0.03, (5, 4)), random_labels(5, rng)
    slower = np.where(labels, np.maximum((1 + share) * times, times + 0.002), times)
    expected = doubled_ranks(made(np.log(times), labels), 0.0)
    found = doubled_ranks(made(np.log(slower), labels), np.log1p(share), 0.002)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("ties", [False, True])
def test_the_level_is_exact_over_all_orders(rng, ties):
    logs = rng.standard_normal((3, 4)).round(0 if ties else 6)
    found = np.array([p_values(made(logs, order), 0.0)[0] for order in every_order(3, 4, 2)])
    for level in np.unique(found):
        assert np.mean(found <= level + 1e-12) == pytest.approx(level)


def test_values_far_apart_in_every_block_are_as_improbable_as_can_be():
    logs = np.array([[0.0, 0.1, 5.0, 5.2]] * 5)
    blocks = made(logs, logs > 1)
    assert p_values(blocks, 0.0) == pytest.approx((6.0**-5, 1.0))


def test_all_equal_is_no_surprise_either_way():
    blocks = made(np.zeros((5, 4)), np.array([[True, False] * 2] * 5))
    assert p_values(blocks, 0.0) == pytest.approx((1.0, 1.0))


def test_rounding_breaks_no_ties():
    times = np.array([[0.1, 0.2, 0.3, 0.4], [0.3, 0.6, 0.9, 1.2], [0.7, 1.4, 2.1, 2.8]])
    blocks = made(np.log(times), times > 0)
    assert np.unique(doubled_ranks(blocks, 0.0), axis=0).shape == (1, 4)


@pytest.fixture
def many(rng):
    labels = random_labels(20, rng)
    return made(rng.standard_normal((20, 4)) + 0.3 * labels, labels)


def test_random_orders_stand_in_for_all(many, monkeypatch):
    exact = p_values(many, 0.0)
    monkeypatch.setattr(randomisation, "EXACT_BLOCKS", 19)
    drawn = p_values(many, 0.0, draws=19_999)
    assert drawn == pytest.approx(exact, abs=4 * np.sqrt(0.25 / 20_000))


def test_random_orders_never_give_a_p_value_of_zero(monkeypatch):
    monkeypatch.setattr(randomisation, "EXACT_BLOCKS", 4)
    logs = np.array([[0.0, 0.1, 5.0, 5.2]] * 20)
    assert p_values(made(logs, logs > 1), 0.0, draws=999) == (1 / 1000, 1.0)
    assert p_values(made(logs, logs < 1), 0.0, draws=999) == (1.0, 1 / 1000)


@pytest.mark.parametrize("exact", [19, 20])
def test_the_same_seed_gives_the_same_p_value(many, monkeypatch, exact):
    monkeypatch.setattr(randomisation, "EXACT_BLOCKS", exact)
    assert p_values(many, 0.0, seed=3) == p_values(many, 0.0, seed=3)


def test_the_seed_draws_the_orders(many, monkeypatch):
    monkeypatch.setattr(randomisation, "EXACT_BLOCKS", 4)
    assert len({p_values(many, 0.0, seed=seed) for seed in range(8)}) > 1


@pytest.mark.slow
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
    blocks = made(np.array(rows, dtype=float), candidate)
    found = centred_statistics(blocks, sorted(shifts))
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("count", [2, 5, 8, 9, 20])
def test_one_tail_is_that_of_both(count):
    rng = np.random.default_rng(count)
    candidate = random_labels(count, rng)
    blocks = made(rng.normal(size=(count, 4)).round(1), candidate)  # with ties
    for shift in (-0.4, 0.0, 0.3):
        found = tuple(tail(blocks, shift, slow=slow) for slow in (True, False))
        assert found == pytest.approx(p_values(blocks, shift), rel=1e-12)


def test_statistics_of_many_shifts_are_rank_sums():
    rng = np.random.default_rng(0)
    blocks = made(rng.normal(size=(6, 4, 2)).round(1), random_labels(6, rng))
    for shift, found in zip(
        [-1, 0.1, 0.5], centred_statistics(blocks, [-1, 0.1, 0.5]), strict=True
    ):
        ranks = doubled_ranks(blocks, shift)
        assert found == ranks[blocks.candidate].sum() - ranks.sum() // 2
