"""Verdict of the gate on one metric, and health of a series of times."""

from __future__ import annotations

from typing import Final, Literal

from orbax_bench_core.records import ResultModel

_DRIFT_P: Final = 0.01
_DRIFT: Final = 0.05

Word = Literal["REGRESSION", "PASS", "INCONCLUSIVE"]


class Verdict(ResultModel):
    """Verdict on one metric of one point.

    Attributes:
        word: REGRESSION, PASS or INCONCLUSIVE.
        reason: Why it could not be judged; empty when it was.
        ratio: Candidate over baseline, so that above 1 is worse; None when it could not be judged.
        low: Lower end of the 95 % interval of the ratio.
        high: Upper end of it.
        p_regression: Probability of data like these when the ratio is within the tolerance.
        p_pass: Probability of data like these when the ratio is at the margin.
        operations: Operations per arm that were looked at.
        look: Index of the look at which it was settled, or of the last one made; None before the
            first.
        settled: Whether more operations would change nothing, because the first verdict stands.
        detectable: Smallest relative slow-down that as many operations as these would find, such
            as 0.05 for 5 %; None when the noise is not known.
        more_blocks: About how many more blocks a verdict needs; 0 when settled, None when not
            known.
    """

    word: Word
    reason: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p_regression: float | None = None
    p_pass: float | None = None
    operations: int = 0
    look: int | None = None
    settled: bool = False
    detectable: float | None = None
    more_blocks: int | None = None


class SeriesHealth(ResultModel):
    """Health of one series of times.

    Attributes:
        n: Number of values.
        median: Median, seconds.
        spread: Interquartile range over the median, a ratio; None below two values.
        sigma: Robust standard deviation of the log times; None below two values.
        drift_p: P-value of the test for a drift, see `gate.drift`; None below six values.
        drift: Change from start to end by a robust line, such as 0.15 for +15 %; None below six.
        regimes: Whether the values fall into two separate groups.
        regime_ratio: Median of the slow group over that of the fast one; None without groups.
        outliers: Share of the values that lie far off the others.
        flags: What a reader must know, one line each; empty for a healthy series.
    """

    n: int
    median: float
    spread: float | None = None
    sigma: float | None = None
    drift_p: float | None = None
    drift: float | None = None
    regimes: bool = False
    regime_ratio: float | None = None
    outliers: float = 0.0
    flags: tuple[str, ...] = ()

    @property
    def drifts(self) -> bool:
        """Whether the series drifts so clearly (p below 1 %) and so much (5 %) that it matters."""
        return is_drift(self.drift_p, self.drift)


def is_drift(p_value: float | None, drift: float | None) -> bool:
    """Returns whether a change over a series is both improbable by chance and large.

    `drift` is relative, from start to end; both are None when there were too few values.
    """
    if p_value is None or drift is None:
        return False
    return p_value < _DRIFT_P and abs(drift) >= _DRIFT
