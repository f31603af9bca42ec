"""The ratio is what balances the ranks, and its interval is what the test does not reject."""

import math

import numpy as np
import pytest

from orbax_bench_core.gate.blocks import Blocks, read_blocks
from orbax_bench_core.gate.estimate import SIDE, estimate, log_ratio
from orbax_bench_core.gate.rank_test import centred_statistic, p_values


@pytest.fixture
def blocks(paired):
    def build(*args, **kwargs):
        found = read_blocks(*paired(*args, **kwargs))
        assert isinstance(found, Blocks)
        return found

    return build


def test_without_noise_the_ratio_is_exact(blocks):
    assert estimate(blocks(5, ratio=1.25, sigma=0.0)).ratio == pytest.approx(1.25, abs=1e-6)


def test_without_noise_the_interval_is_the_ratio(blocks):
    found = estimate(blocks(5, ratio=1.25, sigma=0.0))
    assert (found.low, found.high) == pytest.approx((1.25, 1.25), abs=1e-5)


def test_the_ratio_balances_the_ranks(blocks):
    data = blocks(9, ratio=1.3, sigma=0.3)
    centre = log_ratio(data)
    assert centred_statistic(data, centre - 0.02) >= 0 >= centred_statistic(data, centre + 0.02)


def test_the_interval_ends_where_the_test_begins_to_reject(blocks):
    data = blocks(9, ratio=1.3, sigma=0.3)
    found = estimate(data)
    low, high = math.log(found.low), math.log(found.high)
    margin = 0.02 * (high - low)
    assert p_values(data, low)[0] <= SIDE < p_values(data, low + margin)[0]
    assert p_values(data, high)[1] <= SIDE < p_values(data, high - margin)[1]


def test_two_blocks_have_no_interval(blocks):
    found = estimate(blocks(2, sigma=0.1))
    assert (found.low, found.high) == (None, None)


def test_three_blocks_have_one(blocks):
    found = estimate(blocks(3, sigma=0.1))
    assert found.low < found.ratio < found.high


def test_one_wild_value_hardly_moves_the_ratio(blocks):
    data = blocks(10, ratio=1.2, sigma=0.02)
    logs = data.logs.copy()
    logs[3, 0] += 3.0
    wild = Blocks(logs=logs, candidate=data.candidate)
    assert estimate(wild).ratio == pytest.approx(estimate(data).ratio, rel=0.01)


def test_a_step_between_blocks_moves_nothing(blocks):
    data = blocks(10, ratio=1.2)
    stepped = Blocks(logs=data.logs + np.arange(10)[:, None], candidate=data.candidate)
    assert estimate(stepped).ratio == pytest.approx(estimate(data).ratio, abs=1e-5)
