"""Calibration of the gate: its false-positive rate on identical arms, with an exact test."""

import dataclasses
from typing import Final

_SUSPICIOUS: Final = 0.01


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RejectRate:
    """False-positive rate of tests of identical arms."""

    tests: int  # number of tests
    rejected: int  # how many of them said REGRESSION
    alpha: float  # share of them that may
    rate: float | None = None  # share of them that did; None without tests
    # lower end of its 95 % interval (Clopper and Pearson); None without tests
    low: float | None = None
    high: float | None = None  # upper end of it
    # probability of at least so many if the rate is alpha, under Binomial(tests, alpha); None
    # without tests
    p_value: float | None = None
    calibrated: bool | None = None  # whether nothing speaks against alpha; None without tests


def reject_rate(n_tests: int, n_rejected: int, alpha: float) -> RejectRate:
    """Tests the findings of A/A tests against the level that the gate promises.

    Only too many rejections speak against it: an exact test of discrete data rejects a little less
    often than it may. The tests must be independent of each other; operations of one run are not.

    Args:
        n_tests: A/A tests that were made.
        n_rejected: Those that found a difference.
        alpha: The level that the gate promises.

    Raises:
        ValueError: `alpha` is no probability, or there were more findings than tests.
    """
    if not 0 <= n_rejected <= n_tests:
        raise ValueError(f"{n_rejected} of {n_tests} tests rejected: that is no count")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}; a probability between 0 and 1 is needed")
    if n_tests == 0:
        return RejectRate(tests=0, rejected=0, alpha=alpha)
    from scipy.stats import binomtest

    p_value = float(binomtest(n_rejected, n_tests, alpha, alternative="greater").pvalue)
    interval = binomtest(n_rejected, n_tests, alpha).proportion_ci(0.95, method="exact")
    return RejectRate(
        tests=n_tests,
        rejected=n_rejected,
        alpha=alpha,
        rate=n_rejected / n_tests,
        low=float(interval.low),
        high=float(interval.high),
        p_value=p_value,
        calibrated=p_value >= _SUSPICIOUS,
    )
