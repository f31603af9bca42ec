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
from orbax_bench_core.gate.excess import Excess
from orbax_bench_core.gate.looks import Schedule, within
from orbax_bench_core.gate.noise import robust_sigma
from orbax_bench_core.gate.verdict import StallVerdict, Word
from orbax_bench_core.reasons import Reasons, because

RATIO: Final = 1.5
SIGMAS: Final = 4.0
"""A stall takes 1.5 times the median, and is 4 robust standard deviations of the log above it."""

_FEWEST_MORE: Final = 5
_SMALLEST_SHARE: Final = 0.02
"""A REGRESSION needs that many more stalls, and as large a share of the operations."""

_SUSPICIOUS_P: Final = 0.05
"""P-value up to which stalls keep a PASS back at the last look."""


def find_stalls(blocks: Blocks) -> tuple[Bools, float]:
    """Returns which operations stalled, and from which multiple of the median on.

    The first has the shape of `blocks.logs`: (blocks, slots, operations). What failed or hung is
    among them, also where so much of it did that the median is no longer one of what passed.
    """
    logs = blocks.logs
    above = max(math.log(RATIO), SIGMAS * (robust_sigma(logs.ravel()) or 0.0))
    return np.asarray((logs > np.median(logs) + above) | blocks.failed), math.exp(above)


def judge_stalls(
    blocks: Blocks, rule: GateRule, look: int, *, alpha: float, seed: int = 0
) -> StallVerdict:
    """Judges the stalls of one series by its operations up to a look, at its share of alpha.

    While the candidate is suspected of more stalls, or `max_stalls` is not yet excluded, a
    comparison goes on, to one look more than open times have.

    Args:
        blocks: Operations up to the look.
        rule: Limit of stalls, and draws.
        look: Index of the look.
        alpha: Level of the operation, of which the look has its share.
        seed: Seed of the orders of the arms that are drawn.
    """
    schedule = Schedule.of(rule, blocks.per_life)
    seen, threshold = find_stalls(blocks)
    excess = Excess.of(seen, blocks.candidate, draws=rule.draws, seed=seed)
    mean_ratio = _mean_ratio(blocks)
    word, reason = _word(
        excess,
        int((blocks.failed & blocks.labels).sum()),
        mean_ratio,
        rule,
        alpha * schedule.stall_shares[look],
        last=look >= schedule.one_more,
    )
    return StallVerdict(
        word=word,
        candidate=excess.candidate,
        baseline=excess.baseline,
        operations=excess.operations,
        bound=excess.bound,
        limit=rule.max_stalls if isinstance(rule.max_stalls, float) else None,
        threshold=threshold,
        mean_ratio=mean_ratio,
        p_value=excess.p_value,
        look=look,
        reason=reason,
    )


def _word(
    excess: Excess,
    failed: int,
    mean_ratio: float | None,
    rule: GateRule,
    level: float,
    *,
    last: bool,
) -> tuple[Word, Reasons]:
    fewest = max(_FEWEST_MORE, math.floor(_SMALLEST_SHARE * excess.operations) + 1)
    regressed = excess.difference >= fewest and within(excess.p_value, level)
    suspected, dear = excess.suspected, False
    if last and not regressed:
        # A job pays the mean: stalls that chance may explain can still cost more than the margin.
        dear = mean_ratio is not None and mean_ratio > 1 + rule.margin
        suspected = suspected and (dear or within(excess.p_value, _SUSPICIOUS_P))
    if regressed or suspected:
        return "REGRESSION" if regressed else "INCONCLUSIVE", because(
            "stalls",
            candidate=excess.candidate,
            baseline=excess.baseline,
            operations=excess.operations,
            failed=failed or None,
            mean_ratio=mean_ratio if dear else None,
        )
    left_open = excess.beyond(rule.max_stalls, "stalls")
    return ("INCONCLUSIVE" if left_open else "PASS"), left_open


def _mean_ratio(blocks: Blocks) -> float | None:
    labels, worked = blocks.labels, ~blocks.failed
    candidate, baseline = blocks.logs[labels & worked], blocks.logs[~labels & worked]
    if not len(candidate) or not len(baseline):
        return None
    return float(np.exp(candidate).mean() / np.exp(baseline).mean())
