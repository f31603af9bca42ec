"""A/A tests are counted against what the gate promises."""

import pytest
from scipy.stats import binom

from orbax_bench_core.gate import reject_rate


def test_as_many_as_promised_are_fine():
    found = reject_rate(400, 4, 0.01)
    assert (found.calibrated, found.rate) == (True, 0.01)


def test_too_many_are_not():
    found = reject_rate(400, 20, 0.01)
    assert found.calibrated is False


def test_too_few_are_no_fault():
    assert reject_rate(10_000, 0, 0.01).calibrated


def test_the_p_value_is_binomial_and_the_interval_holds_the_rate():
    found = reject_rate(100, 3, 0.01)
    assert found.p_value == pytest.approx(binom.sf(2, 100, 0.01))
    assert found.low < found.rate < found.high


def test_without_tests_nothing_is_said():
    found = reject_rate(0, 0, 0.01)
    assert (found.rate, found.p_value, found.calibrated) == (None, None, None)


@pytest.mark.parametrize(("tests", "rejected"), [(3, 4), (3, -1), (-1, 0)])
def test_counts_must_be_counts(tests, rejected):
    with pytest.raises(ValueError, match="no count"):
        reject_rate(tests, rejected, 0.01)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1])
def test_alpha_must_be_a_probability(alpha):
    with pytest.raises(ValueError, match="alpha is"):
        reject_rate(3, 0, alpha)
