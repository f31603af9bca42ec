"""Verdict of the gate on one metric, and health of a series of times."""

from typing import Any, Final, Literal

import pydantic

from orbax_bench_core.files import ResultModel
from orbax_bench_core.reasons import NO_REASON, Reasons

_DRIFT_P: Final = 0.01
_DRIFT: Final = 0.05
"""A drift is flagged if it is as improbable as this, and as large."""

Word = Literal["REGRESSION", "PASS", "INCONCLUSIVE"]

Endpoint = Literal["time", "stalls", "failures", "missing", "storage"]
"""Ground of a verdict: the typical time, stalled operations, failed attempts, an operation that an
arm lacks, or so much trouble with an object store that times tell of storage."""


class StallVerdict(ResultModel):
    """Verdict on the stalls of one operation, values far above the median of both arms."""

    word: Word  # REGRESSION, PASS, or INCONCLUSIVE while the candidate is suspected of more stalls
    candidate: int  # stalled operations of the candidate
    baseline: int  # stalled operations of the baseline
    operations: int  # operations per arm that were looked at
    # largest share of stalls in the candidate that its count does not exclude, upper 95 % limit of
    # Clopper and Pearson
    bound: float
    # share beyond the baseline's that a PASS excludes; None if none was to be excluded, which also
    # is so where that would take longer than `gate.limit_minutes`
    limit: float | None = None
    threshold: float  # what counts as a stall, as a multiple of the median
    # mean time of the candidate over that of the baseline, failed attempts left out; None if an
    # arm has none. At the last look it can keep a PASS back.
    mean_ratio: float | None = None
    p_value: float  # probability of at least so many in the candidate if the arms are the same
    look: int  # index of the look
    reason: Reasons = NO_REASON  # why it is not PASS; empty when it is

    @pydantic.model_validator(mode="before")
    @classmethod
    def _of_before(cls, content: Any) -> Any:
        """Reads verdicts of earlier releases, which counted operations after the look as well."""
        if isinstance(content, dict):
            return {name: value for name, value in content.items() if name != "measured"}
        return content


class FailureVerdict(ResultModel):
    """Verdict on the first attempts of a point that failed or hung."""

    # REGRESSION, PASS, or INCONCLUSIVE while the candidate is suspected of more failures
    word: Word
    candidate: int  # failed first attempts of the candidate
    baseline: int  # failed first attempts of the baseline
    attempts: int  # first attempts per arm that were looked at
    p_value: float  # probability of at least so many in the candidate if the arms are the same
    # largest share of failures of the candidate that its count does not exclude, upper 95 % limit
    # of Clopper and Pearson
    bound: float
    # share beyond the baseline's that a PASS excludes; None as for stalls
    limit: float | None = None
    look: int | None = None  # index of the look; None before the first
    reason: Reasons = NO_REASON  # why it is not PASS; empty when it is


class Verdict(ResultModel):
    """Verdict on one metric of one point.

    Attributes:
        word: REGRESSION, PASS or INCONCLUSIVE, by its typical time and its stalls.
        reason: Why it could not be judged, or what keeps it from passing; empty when it was judged.
        endpoint: Which of the two decided the word; `missing` when an arm lacks the metric.
        time_word: What the typical time alone says.
        ratio: Candidate over baseline, so that above 1 is worse; None when it could not be judged.
        low: Lower end of the 95 % interval of the ratio, and of what a job pays that runs the
            candidate alone: above the tolerance exactly when the time says REGRESSION.
        high: Upper end of it: below the margin exactly when the time says PASS. Where the smallest
            slow-down in seconds decided, the interval stays one of ratios and need not agree.
        p_regression: Probability of data like these when the ratio is within the tolerance; for two
            separate runs, within what these may differ by, at least 2x.
        p_pass: Probability of data like these when the ratio is at the margin.
        operations: Operations per arm that all of this is of: those up to the look.
        lives: Lives of workers per arm among them; 0 for arms in one process each, or in one.
        look: Index of the look at which the comparison ended, or of the last one made; None before
            the first.
        settled: Whether more operations of it are not needed: it has a verdict, or its looks are
            used up.
        bound: Which bound the word is about: a `ratio`, or the `floor` of seconds.
        faster: Whether a candidate that is as slow as the baseline is ruled out.
        detectable: Smallest relative slow-down that is found nine times in ten by that look, such
            as 0.05 for 5 %; None when the noise is not known. For two separate runs, the slow-down
            beyond which one is a REGRESSION.
        detectable_80: The same for eight times in ten.
        more_blocks: About how many more blocks a verdict needs; 0 when one stands, None when not
            known, or more than anyone would run.
        stalls: What the stalls say; None before the first look.
        beyond_runs: Whether a REGRESSION of two separate runs is beyond what runs of the same thing
            are supposed to differ by, so that it counts and does not only warn.
    """

    word: Word
    reason: Reasons = NO_REASON
    endpoint: Endpoint = "time"
    time_word: Word | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p_regression: float | None = None
    p_pass: float | None = None
    operations: int = 0
    lives: int = 0
    look: int | None = None
    settled: bool = False
    bound: Literal["ratio", "floor"] = "ratio"
    faster: bool = False
    detectable: float | None = None
    detectable_80: float | None = None
    more_blocks: int | None = None
    stalls: StallVerdict | None = None
    beyond_runs: bool = False


class SeriesHealth(ResultModel):
    """Health of one series of times."""

    n: int  # number of values
    median: float  # median, seconds
    # interquartile range over the median, a ratio; None below two values
    spread: float | None = None
    sigma: float | None = None  # robust standard deviation of the log times; None below two values
    # P-value of the test for a drift, see `gate.drift`; None below six values
    drift_p: float | None = None
    # change from start to end by a robust line, such as 0.15 for +15 %; None below six
    drift: float | None = None
    regimes: bool = False  # whether the values fall into two separate groups
    # median of the slow group over that of the fast one; None without groups
    regime_ratio: float | None = None
    outliers: float = 0.0  # share of the values that are far from the others
    flags: Reasons = NO_REASON  # what a reader must know; none of a healthy series

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
