"""Stalls: operations far above the median, which the typical time cannot see.

A stall is an operation above the median of all operations so far, of both arms, by more than a half
and by more than four robust standard deviations. That does not look at the labels, so redrawing
them keeps the level whatever is chosen. Stalls that stick to a process move with its life.
"""

import math
from typing import Final

import numpy as np

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import Blocks, Bools
from orbax_bench_core.gate.excess import Excess, upper_bound
from orbax_bench_core.gate.location import TimeTest
from orbax_bench_core.gate.looks import Schedule, within
from orbax_bench_core.gate.noise import robust_sigma
from orbax_bench_core.gate.verdict import StallCount, StallVerdict, Word

RATIO: Final = 1.5
SIGMAS: Final = 4.0

_FEWEST_MORE: Final = 5
_SMALLEST_SHARE: Final = 0.02
"""A REGRESSION needs that many more stalls, and as large a share of the operations."""

_SUSPICIOUS_P: Final = 0.05


def find_stalls(blocks: Blocks) -> tuple[Bools, float]:
    """Returns which operations stalled, and from which multiple of the median on."""
    logs = blocks.logs
    above = max(math.log(RATIO), SIGMAS * (robust_sigma(logs.ravel()) or 0.0))
    return np.asarray(logs > np.median(logs) + above), math.exp(above)


def count_stalls(blocks: Blocks) -> StallCount:
    """Returns the stalls of both arms."""
    seen, threshold = find_stalls(blocks)
    candidate = int(seen[blocks.labels].sum())
    return StallCount(
        candidate=candidate,
        baseline=int(seen.sum()) - candidate,
        operations=blocks.operations,
        bound=upper_bound(candidate, blocks.operations),
        threshold=threshold,
        mean_ratio=_mean_ratio(blocks),
    )


def settle_stalls(
    blocks: Blocks, rule: GateRule, outcome: TimeTest, *, alpha: float, seed: int = 0
) -> tuple[StallVerdict | None, bool]:
    """Looks at the stalls of one series for as long as its comparison goes on.

    While the time is open the comparison goes on for its sake. Once that passes, it goes on while
    the candidate is suspected of more stalls, or `max_stalls` is not yet excluded, to a last look
    of its own.
    """
    schedule = Schedule.of(rule, blocks.per_life)
    found: StallVerdict | None = None
    for look in range(schedule.reached(len(blocks))):
        if outcome.look is None or (look > outcome.look and outcome.word != "PASS"):
            break
        found = _look(blocks.first(schedule.blocks(look)), rule, look, alpha, seed)
        ends = outcome.settled and look >= outcome.look
        last = look == len(schedule.looks) - 1
        if found.word == "REGRESSION" or (ends and (found.word == "PASS" or last)):
            return found, True
        if outcome.word == "REGRESSION" and ends:
            return found, True
    return found, False


def _look(blocks: Blocks, rule: GateRule, look: int, alpha: float, seed: int) -> StallVerdict:
    schedule = Schedule.of(rule, blocks.per_life)
    count = count_stalls(blocks)
    excess = Excess.of(find_stalls(blocks)[0], blocks.candidate, draws=rule.draws, seed=seed)
    level = alpha * schedule.stall_shares[look]
    failed = int((blocks.failed & blocks.labels).sum())
    last = look == len(schedule.looks) - 1
    word, reason = _word(excess, failed, count.mean_ratio, rule, level, last=last)
    return StallVerdict(**dict(count), word=word, reason=reason, p_value=excess.p_value, look=look)


def _word(
    excess: Excess,
    failed: int,
    mean_ratio: float | None,
    rule: GateRule,
    level: float,
    *,
    last: bool,
) -> tuple[Word, str]:
    counts = (
        f"{excess.candidate} of {excess.operations} operations of the candidate stalled"
        f"{f' ({failed} of them failed)' if failed else ''}, and {excess.baseline} of the baseline"
    )
    fewest = max(_FEWEST_MORE, math.floor(_SMALLEST_SHARE * excess.operations) + 1)
    if excess.difference >= fewest and within(excess.p_value, level):
        return "REGRESSION", counts
    suspected = excess.suspected
    if last:
        # A job pays the mean: stalls that chance may explain can still cost more than the margin.
        dear = mean_ratio is not None and mean_ratio > 1 + rule.margin
        suspected = suspected and (dear or within(excess.p_value, _SUSPICIOUS_P))
        counts += f"; with them the mean time is {mean_ratio:.2f}x" if dear else ""
    if suspected:
        return "INCONCLUSIVE", counts
    left_open = excess.beyond(rule.max_stalls, "stalls", "operations")
    return ("INCONCLUSIVE" if left_open else "PASS"), left_open


def _mean_ratio(blocks: Blocks) -> float | None:
    labels, worked = blocks.labels, ~blocks.failed
    candidate, baseline = blocks.logs[labels & worked], blocks.logs[~labels & worked]
    if not len(candidate) or not len(baseline):
        return None
    return float(np.exp(candidate).mean() / np.exp(baseline).mean())
