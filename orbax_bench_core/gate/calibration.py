"""Calibration of the gate: its false-positive rate on identical arms, with an exact test."""

from __future__ import annotations

import dataclasses
from typing import Final

_SUSPICIOUS: Final = 0.01


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RejectRate:
    """False-positive rate of tests of identical arms.

    Attributes:
        tests: Number of tests.
        rejected: How many of them said REGRESSION.
        alpha: Share of them that may.
        rate: Share of them that did; None without tests.
        low: Lower end of its 95 % interval (Clopper and Pearson); None without tests.
        high: Upper end of it.
        p_value: Probability of at least so many if the rate is alpha, under Binomial(tests, alpha);
            None without tests.
        calibrated: Whether nothing speaks against alpha; None without tests.
        statement: All of this, one line for people.
    """

    tests: int
    rejected: int
    alpha: float
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    calibrated: bool | None = None
    statement: str


def reject_rate(n_tests: int, n_rejected: int, alpha: float) -> RejectRate:
    """Tests the findings of A/A tests against the level that the gate promises.

    Only too many rejections speak against it: an exact test of discrete data rejects a little less
    often than it may. The tests must be independent of each other; operations of one run are not.
    """
    if not 0 <= n_rejected <= n_tests:
        raise ValueError(f"{n_rejected} of {n_tests} tests rejected: that is no count")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}; a probability between 0 and 1 is needed")
    if n_tests == 0:
        return RejectRate(
            tests=0, rejected=0, alpha=alpha, statement="no A/A tests yet: nothing can be said"
        )
    from scipy.stats import binomtest

    p_value = float(binomtest(n_rejected, n_tests, alpha, alternative="greater").pvalue)
    interval = binomtest(n_rejected, n_tests, alpha).proportion_ci(0.95, method="exact")
    calibrated = p_value >= _SUSPICIOUS
    rate = n_rejected / n_tests
    judgement = (
        "nothing speaks against that"
        if calibrated
        else "that is too many: the runs have something that the gate does not allow for"
    )
    return RejectRate(
        tests=n_tests,
        rejected=n_rejected,
        alpha=alpha,
        rate=rate,
        low=float(interval.low),
        high=float(interval.high),
        p_value=p_value,
        calibrated=calibrated,
        statement=(
            f"{n_rejected} of {n_tests} A/A tests ({rate:.1%}) said REGRESSION where "
            f"{alpha:.1%} may: {judgement} (p = {p_value:.2g})"
        ),
    )
