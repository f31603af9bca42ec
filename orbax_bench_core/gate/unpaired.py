"""Unpaired comparison with a stored baseline, which cannot run again.

Two runs on different days differ for reasons that no number of repeats within a run shows. What two
runs of the same thing have differed by in the past does, so the threshold comes from there. Without
such a past they are supposed to differ by up to 2x, and whether a slow-down is beyond that is an
exact test of ranks, however few the operations.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Better, Floats
from orbax_bench_core.gate.looks import within
from orbax_bench_core.gate.verdict import Verdict, Word
from orbax_bench_core.reasons import NO_REASON, Reasons, because

FEWEST_PAST: Final = 4
"""Fewer past ratios say too little of their spread."""

RUNS_DIFFER: Final = 2.0
"""Ratio that two runs of the same thing are supposed to reach where their past does not tell: it is
exceeded in fewer than 1 of 100 comparisons where each run is off by 20 %, see `perf.side_rules`."""

_TIE: Final = 1e-10
"""Log ratio that no clock resolves."""

_MOST_PAIRS: Final = 4000
"""Pairs of operations of both runs up to which orders are counted; a normal tail does beyond."""

# 2^-50 is about the precision of a float: more halvings would not move the end of a bracket.
_HALVINGS: Final = 50
_MOST_WANTED: Final = 1000
"""Operations beyond which nobody is asked for more."""

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
    """Compares two separate runs of one operation; show the result labelled unpaired.

    With a past the threshold is the larger of log(1 + margin) and the upper end of the 99 %
    prediction interval for one more of the log ratios that pairs of past runs of this point gave
    with nothing changed: mean + t(.99, n - 1) s sqrt(1 + 1/n), with s their standard deviation
    (G. J. Hahn and W. Q. Meeker, "Statistical Intervals", 1991, section 4.8). REGRESSION says that
    the ratio of medians is beyond it: 1.0 % of normal ratios are when nothing has changed, 1.7 % of
    t3 ones with four past ratios, 2.2 % with ten. PASS says that the ratio would still be below the
    margin if the runs had drawn apart by as much in the candidate's favour: no significant
    difference is not a pass.

    Without, the runs may differ by `RUNS_DIFFER` on top of what the past has. REGRESSION says that
    less than this, and than the margin, is rejected at alpha; PASS that a slow-down of the margin
    is at `pass_alpha`, had the runs drawn apart by as much in the candidate's favour. Both are the
    test of Mann and Whitney on times that are shifted by the bound, exact for n and m operations
    that could be exchanged: its least p-value is 1 / C(n + m, n). Ties count against a verdict.

    Whatever is wrong with the input, or missing, is the `reason` of an INCONCLUSIVE.

    Args:
        baseline: Seconds of the operations of one run, shape (n,).
        candidate: Those of the other, shape (m,).
        past_log_ratios: Log ratios of medians of pairs of past runs with nothing changed.
        rule: Tolerance, margin and levels; None for the default ones.
        better: Which way values are good.
    """
    rule = GateRule() if rule is None else rule
    before, now = _logs(baseline, "baseline"), _logs(candidate, "candidate")
    if isinstance(before, tuple):
        return Verdict(word="INCONCLUSIVE", reason=before)
    if isinstance(now, tuple):
        return Verdict(word="INCONCLUSIVE", reason=now)
    sign = -1 if better == "higher" else 1
    log_ratio = sign * float(np.median(now) - np.median(before))
    past = sign * np.asarray(past_log_ratios, dtype=np.float64)
    found = Verdict(
        word="INCONCLUSIVE", ratio=math.exp(log_ratio), operations=min(len(before), len(now))
    )
    if past.ndim != 1 or not np.isfinite(past).all():
        return found.model_copy(update={"reason": because("malformed", what="past")})
    runs = _Runs(np.sort(sign * before), np.sort(sign * now))
    margin, reason = math.log1p(rule.margin), NO_REASON
    known = len(past) >= FEWEST_PAST
    # What two runs may differ by to the candidate's disadvantage, and to its advantage.
    against, favour = _apart(past)
    threshold = max(margin, against)
    p_value = runs.p_value(max(threshold, math.log(RUNS_DIFFER)))
    beyond = within(p_value, rule.alpha)
    # Whether a candidate is fast enough is the same question with the arms changed round.
    fast = _Runs(runs.now, runs.before).p_value(favour - margin)
    word: Word = "INCONCLUSIVE"
    if log_ratio > threshold if known else beyond:
        word = "REGRESSION"
    elif log_ratio + favour < margin if known else within(fast, rule.pass_alpha):
        word = "PASS"
    if not known and word != "PASS":
        few = within(p_value, _least(len(before), len(now))) and not beyond
        reason = runs.seen(math.exp(log_ratio), rule.alpha)
        reason += because("past_unknown", ratios=len(past), counted=math.exp(threshold))
        if word == "INCONCLUSIVE":
            more = because("captures_needed", runs=FEWEST_PAST - len(past))
            reason += runs.lacking(rule.alpha) if few else more
    return found.model_copy(
        update={
            "word": word,
            "reason": reason,
            "settled": word != "INCONCLUSIVE",
            "detectable": math.expm1(threshold),
            "p_regression": p_value,
            "beyond_runs": word == "REGRESSION" and beyond,
        }
    )


def run_log_ratio(before: Any, now: Any) -> float:
    """Returns the log of the ratio of medians of two runs, which is what a history keeps.

    Args:
        before: Seconds of the operations of the earlier run, shape (n,).
        now: Those of the later one, shape (m,).

    Raises:
        ValueError: One of them has no values, or some that are not positive and finite.
    """
    first, second = _logs(before, "before"), _logs(now, "now")
    for run in (first, second):
        if isinstance(run, tuple):
            raise ValueError(f"no ratio of two runs: {run[0].code} {run[0].values}")
    return float(np.median(np.asarray(second)) - np.median(np.asarray(first)))


@dataclasses.dataclass(frozen=True, slots=True)
class _Runs:
    """Log costs of the operations of two runs, each in ascending order."""

    before: Floats
    now: Floats

    def p_value(self, shift: float) -> float:
        """Returns the probability of a candidate at least this slow if the log ratio is `shift`."""
        slower = int(np.searchsorted(self.before, self.now - shift - _TIE).sum())
        return _tail(len(self.before), len(self.now), slower)

    def seen(self, ratio: float, alpha: float) -> Reasons:
        """Returns the result of these two runs, at the level that so many operations allow."""
        level = max(alpha, _least(len(self.before), len(self.now)))
        bound = self._bound(level)
        return because(
            "two_runs",
            ratio=ratio,
            slower=int((self.now > self.before[-1]).sum()),
            candidate=len(self.now),
            baseline=len(self.before),
            above=bound if bound > 1 else None,
            level=level,
        )

    def lacking(self, alpha: float) -> Reasons:
        """Returns how many more operations the level needs."""
        before, now = len(self.before), len(self.now)
        wanted = range(1, _MOST_WANTED)
        more = next((n for n in wanted if within(_least(before, now + n), alpha)), None)
        each = next((n for n in wanted if within(_least(n, n), alpha)), None)
        return because("operations_needed", level=alpha, candidate=more, each=each)

    def _bound(self, level: float) -> float:
        """Returns the largest ratio that is rejected at a level."""
        low, high = self.now[0] - self.before[-1], self.now[-1] - self.before[0]
        low -= 2 * _TIE  # where the candidate is the slower one in every pair
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            rejected = within(self.p_value(middle), level)
            low, high = (middle, high) if rejected else (low, middle)
        return math.exp(low)


def _least(before: int, now: int) -> float:
    """Returns the least p-value that so many operations can have."""
    return _tail(before, now, before * now)


def _tail(before: int, now: int, slower: int) -> float:
    """Returns the chance that the candidate's is the slower one in at least so many of all pairs.

    Every order of the operations is as likely as any other.
    """
    pairs = before * now
    if slower == pairs:
        return 1 / math.comb(before + now, before)
    if pairs <= _MOST_PAIRS:
        return _tails(before, now)[slower]
    from scipy.special import ndtr

    spread = math.sqrt(pairs * (before + now + 1) / 12)
    return float(ndtr((pairs / 2 + 0.5 - slower) / spread))


@functools.lru_cache
def _tails(before: int, now: int) -> tuple[float, ...]:
    """Returns `_tail` for each number of pairs."""
    above = list(itertools.accumulate(reversed(arrangements(before, now))))[::-1]
    return tuple(count / above[0] for count in above)


def arrangements(m: int, n: int) -> list[int]:
    """Returns how many orders of m and n values give each number of pairs in which one is larger.

    They are the coefficients of the Gaussian binomial: the product over i of
    (1 - x^(n + i)) / (1 - x^i), i from 1 to m.
    """
    counts = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for place in range(m * n, n + i - 1, -1):
            counts[place] -= counts[place - n - i]
        for place in range(i, m * n + 1):
            counts[place] += counts[place - i]
    return counts


def _apart(past: Floats) -> tuple[float, float]:
    """Returns by how much two runs of the same thing may differ, as log ratios: both ways.

    With enough of them it is what one more log ratio exceeds once in a hundred.
    """
    if len(past) < FEWEST_PAST:
        usual = math.log(RUNS_DIFFER)
        return usual + max([0.0, *past]), usual + max([0.0, *-past])
    from scipy.special import stdtrit

    quantile = float(stdtrit(len(past) - 1, 1 - _LEVEL))
    reach = quantile * float(past.std(ddof=1)) * math.sqrt(1 + 1 / len(past))
    return float(past.mean()) + reach, reach - float(past.mean())


def _logs(values: Any, name: str) -> Floats | Reasons:
    """Returns the logs of a row of values, or what is wrong with it."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return because("malformed", what=name)
    if found.ndim != 1 or len(found) == 0:
        return because("malformed", what=name, shape=found.shape)
    for index, value in enumerate(found.tolist()):
        if not (math.isfinite(value) and value > 0):
            return because("unusable_value", arm=name, index=index, value=f"{value:g}")
    return np.asarray(np.log(found), dtype=np.float64)
