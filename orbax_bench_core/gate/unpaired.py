"""Unpaired comparison with a stored baseline, which cannot run again: a warning at most.

Two runs on different days differ for reasons that no number of repeats within a run shows. What two
runs of the same thing have differed by in the past does, so the threshold comes from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Better, Floats
from orbax_bench_core.gate.verdict import Verdict, Word

FEWEST_PAST: Final = 4
"""Fewer past ratios say too little of their spread."""

_LEVEL: Final = 0.01
"""Share of runs without any change whose ratio is beyond what the past leads to expect."""


def decide_unpaired(
    baseline: Any,
    candidate: Any,
    past_log_ratios: Sequence[float],
    rule: GateRule | None = None,
    *,
    better: Better = "lower",
) -> Verdict:
    """Compares two separate runs of one operation; show the result as a warning, labelled unpaired.

    The threshold is the larger of log(1 + margin) and the upper end of the 99 % prediction interval
    for one more of the log ratios that pairs of past runs of this point gave with nothing changed:
    mean + t(.99, n - 1) s sqrt(1 + 1/n), with s their standard deviation (G. J. Hahn and W. Q.
    Meeker, "Statistical Intervals", 1991, section 4.8). REGRESSION says that the ratio of medians
    is beyond it: 1.0 % of normal ratios are when nothing has changed, 1.7 % of t3 ones with four
    past ratios, 2.2 % with ten. PASS says that the ratio would still be below the margin if the
    runs had drawn apart by as much in the candidate's favour: no significant difference is not a
    pass. Whatever is wrong with the input, no history included, is the `reason` of an INCONCLUSIVE.

    Args:
        baseline: Seconds of the stored run, or the values of any other positive metric.
        candidate: Seconds of the run that is looked at.
        past_log_ratios: Logs of ratios of medians between past runs of this point, at least 4; see
            `run_log_ratio`. They are of the values, so that more is worse only where `better` is
            `lower`.
        rule: Has the margin; by default the defaults.
        better: Which way the values are good.
    """
    rule = GateRule() if rule is None else rule
    before, now = _logs(baseline, "baseline"), _logs(candidate, "candidate")
    for arm in (before, now):
        if isinstance(arm, str):
            return Verdict(word="INCONCLUSIVE", reason=arm)
    assert not isinstance(before, str)
    assert not isinstance(now, str)
    change = float(np.median(now) - np.median(before))
    sign = -1 if better == "higher" else 1
    log_ratio = sign * change
    word, reason, threshold = _word(log_ratio, [sign * past for past in past_log_ratios], rule)
    return Verdict(
        word=word,
        reason=reason,
        ratio=math.exp(log_ratio),
        operations=min(len(before), len(now)),
        settled=word != "INCONCLUSIVE",
        detectable=None if threshold is None else math.expm1(threshold),
    )


def run_log_ratio(before: Any, now: Any) -> float:
    """Returns the log of the ratio of medians of two runs, which is what a history keeps.

    Raises:
        ValueError: If a run has no values, or one that is not a positive, finite number.
    """
    first, second = _logs(before, "the earlier run"), _logs(now, "the later run")
    for run in (first, second):
        if isinstance(run, str):
            raise ValueError(run)
    return float(np.median(np.asarray(second)) - np.median(np.asarray(first)))


def _word(
    log_ratio: float, past: Sequence[float], rule: GateRule
) -> tuple[Word, str, float | None]:
    """Returns the word, why there is none, and the threshold as a log ratio."""
    if len(past) < FEWEST_PAST:
        count = f"only {len(past)} past ratio(s)" if past else "no past runs"
        needed = f"at least {FEWEST_PAST} are needed to tell a change from a day"
        return "INCONCLUSIVE", f"cannot tell: {count}, and {needed}", None
    history = np.asarray(past, dtype=np.float64)
    if history.ndim != 1 or not np.isfinite(history).all():
        return "INCONCLUSIVE", "the past log ratios are not a row of finite numbers", None
    usual, reach, margin = float(history.mean()), _reach(history), math.log1p(rule.margin)
    threshold = max(margin, usual + reach)
    if log_ratio > threshold:
        return "REGRESSION", "", threshold
    if log_ratio - usual + reach < margin:
        return "PASS", "", threshold
    return "INCONCLUSIVE", "", threshold


def _reach(history: Floats) -> float:
    """Returns by how much one more log ratio exceeds the mean of the past once in a hundred."""
    from scipy.special import stdtrit

    count = len(history)
    quantile = float(stdtrit(count - 1, 1 - _LEVEL))
    return quantile * float(history.std(ddof=1)) * math.sqrt(1 + 1 / count)


def _logs(values: Any, name: str) -> Floats | str:
    """Returns the logs of a row of values, or in words what is wrong with it."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return f"{name} is not a row of numbers"
    if found.ndim != 1 or len(found) == 0:
        return f"{name} has the shape {found.shape}: at least one value in a row is needed"
    for index, value in enumerate(found.tolist()):
        if not (math.isfinite(value) and value > 0):
            return f"{name}[{index}] is {value:g}: a ratio needs positive, finite numbers"
    return np.asarray(np.log(found), dtype=np.float64)
