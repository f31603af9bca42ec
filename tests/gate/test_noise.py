"""Noise of the blocks, and the slow-down that it lets them detect."""

import math

import numpy as np
import pytest

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Blocks, random_labels
from orbax_bench_core.gate.noise import detectable, more_blocks, robust_sigma, within_block_sigma

RULE = GateRule()


@pytest.fixture
def noisy(rng):
    labels = random_labels(4000, rng)
    return Blocks(logs=0.2 * rng.standard_normal(labels.shape), candidate=labels)


def test_the_sigma_of_normal_noise_is_its_standard_deviation(noisy):
    assert within_block_sigma(noisy) == pytest.approx(0.2, rel=0.05)


def test_a_difference_between_the_arms_is_no_noise(noisy):
    apart = Blocks(logs=noisy.logs + 3 * noisy.candidate, candidate=noisy.candidate)
    assert within_block_sigma(apart) == pytest.approx(within_block_sigma(noisy))


def test_a_drift_from_block_to_block_is_no_noise(noisy):
    drifting = noisy.logs + np.arange(len(noisy))[:, None]
    assert within_block_sigma(Blocks(logs=drifting, candidate=noisy.candidate)) == pytest.approx(
        within_block_sigma(noisy)
    )


def test_a_stall_in_ten_hardly_counts(noisy, rng):
    stalled = noisy.logs + (rng.random(noisy.logs.shape) < 0.1)
    assert within_block_sigma(Blocks(logs=stalled, candidate=noisy.candidate)) < 0.27


def test_one_value_has_no_sigma():
    assert robust_sigma(np.zeros(1)) is None


def test_the_detectable_slow_down_is_the_published_formula():
    rule = GateRule(tolerance=0.0)
    expected = math.exp(3.61 * math.sqrt(2) * 0.1 / math.sqrt(0.955 * 20)) - 1
    assert detectable(0.1, 20, rule) == pytest.approx(expected, rel=1e-3)


def test_the_detectable_slow_down_lies_beyond_the_tolerance():
    assert detectable(0.0, 20, RULE) == pytest.approx(RULE.tolerance)


def test_more_operations_detect_less():
    found = [detectable(0.1, operations, RULE) for operations in (10, 20, 40, 60)]
    assert found == sorted(found, reverse=True)


def test_a_clear_case_needs_only_the_next_look():
    assert more_blocks(0.01, 0.0, 10, RULE) == 5


def test_an_unclear_case_skips_the_looks_that_are_too_early():
    assert more_blocks(0.15, 0.0, 20, RULE) == 10
    assert more_blocks(0.15, math.log(1.05), 20, RULE) == 20


def test_beyond_the_last_look_it_is_what_a_longer_one_would_need():
    assert more_blocks(0.5, 0.0, 60, RULE) > 50


def test_there_is_always_at_least_one_more():
    assert more_blocks(0.0, 0.0, 60, RULE) == 1
