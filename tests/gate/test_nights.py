"""Failures that are added up over nights."""

import math

import numpy as np
import pytest

from orbax_bench_core.gate import NightCount, over_nights, random_labels

BLOCKS, NIGHTS = 20, 60


@pytest.fixture
def nights():
    """Returns nights in which shares of the attempts of the baseline and of the candidate fail."""
    rng = np.random.default_rng(7)

    def make(number, baseline, candidate, operations=1):
        made = []
        for _ in range(number):
            labels = random_labels(BLOCKS, rng)
            shares = np.where(labels, candidate, baseline)[:, :, None]
            failed = rng.random((BLOCKS, 4, operations)) < shares
            made.append(NightCount.of(failed, labels))
        return made

    return make


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_arms_that_fail_alike_are_never_named(nights, share):
    found = [over_nights(nights(NIGHTS, share, share)) for _ in range(10)]
    assert sum(map(bool, found)) <= 2, "at most 6 % are expected"


@pytest.mark.parametrize("operations", [1, 5])
def test_good_nights_do_not_hide_the_bad_ones_that_follow(nights, operations):
    good, bad = nights(40, 0.05, 0.02, operations), nights(7, 0.0, 0.08, operations)
    (first, last), *_ = over_nights([*good, *bad])
    assert 38 <= first <= last < 47


def test_a_better_candidate_is_not_named(nights):
    assert over_nights(nights(NIGHTS, 0.1, 0.0)) == ()


def test_a_night_without_failures_is_no_evidence(nights):
    (night,) = nights(1, 0.0, 0.0)
    assert (night.candidate, night.baseline, night.operations) == (0, 0, 2 * BLOCKS)
    assert set(night.evidence) == {0.0}


def test_a_failure_of_the_candidate_is_weighed_against_three_odds():
    labels = np.array([[True, False, False, True]])
    night = NightCount.of(np.array([[True, False, False, False]])[:, :, None], labels)
    assert night.evidence == pytest.approx([math.log(2 * o / (1 + o)) for o in (2.0, 5.0, 50.0)])


@pytest.mark.parametrize("before", [0, 3])
def test_a_stretch_begins_with_the_first_night_that_says_something(nights, before):
    (found, *_) = over_nights([*nights(before, 0.0, 0.0), *nights(3, 0.0, 0.2)])
    assert found[0] == before
