"""Noise of the blocks."""

import numpy as np
import pytest

from orbax_bench_core.gate.blocks import Blocks, random_labels
from orbax_bench_core.gate.noise import robust_sigma, within_block_sigma


def made(logs, labels):
    logs = logs.reshape(*labels.shape, -1)
    return Blocks(logs=logs, candidate=labels, failed=np.zeros(logs.shape, bool))


@pytest.fixture
def noisy(rng):
    labels = random_labels(4000, rng)
    return made(0.2 * rng.standard_normal(labels.shape), labels)


def test_the_sigma_of_normal_noise_is_its_standard_deviation(noisy):
    assert within_block_sigma(noisy) == pytest.approx(0.2, rel=0.05)


def test_a_difference_between_the_arms_is_no_noise(noisy):
    apart = made(noisy.logs + 3 * noisy.labels, noisy.candidate)
    assert within_block_sigma(apart) == pytest.approx(within_block_sigma(noisy))


def test_a_drift_from_block_to_block_is_no_noise(noisy):
    drifting = noisy.logs + np.arange(len(noisy))[:, None, None]
    assert within_block_sigma(made(drifting, noisy.candidate)) == pytest.approx(
        within_block_sigma(noisy)
    )


def test_a_stall_in_ten_hardly_counts(noisy, rng):
    stalled = noisy.logs + (rng.random(noisy.logs.shape) < 0.1)
    assert within_block_sigma(made(stalled, noisy.candidate)) < 0.27


def test_one_value_has_no_sigma():
    assert robust_sigma(np.zeros(1)) is None


def test_the_offset_of_a_life_is_part_of_its_noise(rng):
    labels = random_labels(4000, rng)
    logs = (
        0.2 * rng.standard_normal((*labels.shape, 2))
        + 0.1 * rng.standard_normal(labels.shape)[..., None]
    )
    found = within_block_sigma(made(logs, labels))
    assert found == pytest.approx(np.sqrt(0.2**2 + 2 * 0.1**2), rel=0.05)
