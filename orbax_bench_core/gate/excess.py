"""Excess of a count in the candidate: stalls and failures are judged by it."""

from __future__ import annotations

import dataclasses
import math
from typing import Final, Literal

from orbax_bench_core.gate.blocks import Bools
from orbax_bench_core.gate.randomisation import DRAWS, tails
from orbax_bench_core.reasons import NO_REASON, Reasons, because

_CONFIDENCE: Final = 0.95


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """Counts of something bad in both arms."""

    candidate: int  # how often the candidate did it
    baseline: int  # how often the baseline did it
    operations: int  # out of how many, per arm
    # probability of at least so many in the candidate if the arms are the same, by redrawing the
    # labels of whole slots within blocks
    p_value: float

    @classmethod
    def of(cls, seen: Bools, labels: Bools, *, draws: int = DRAWS, seed: int = 0) -> Excess:
        """Counts what was seen in each arm, and how far chance explains the difference.

        Args:
            seen: Which operations did it, shape (blocks, slots, operations).
            labels: Which slots were the candidate's, shape (blocks, slots).
            draws: Random orders of the arms, used only beyond `EXACT_BLOCKS` blocks.
            seed: Seed of those orders.
        """
        scores = seen.sum(axis=2)
        candidate, baseline = int(scores[labels].sum()), int(scores[~labels].sum())
        p_value = tails(scores, labels, draws=draws, seed=seed)[0] if candidate else 1.0
        return cls(
            candidate=candidate,
            baseline=baseline,
            operations=int(labels.sum()) * seen.shape[2],
            p_value=p_value,
        )

    @property
    def difference(self) -> int:
        """How much more often the candidate did it."""
        return self.candidate - self.baseline

    @property
    def spread(self) -> float:
        """Standard deviation of that difference if the arms are the same."""
        # Counts of what is rare are about Poisson: the variance of their difference is their sum.
        return math.sqrt(self.candidate + self.baseline)

    @property
    def suspected(self) -> bool:
        """Whether the candidate did it so much more often that more data are needed to pass it."""
        return self.difference >= max(1.0, self.spread)

    @property
    def bound(self) -> float:
        """Largest share in the candidate that its count does not exclude."""
        return upper_bound(self.candidate, self.operations)

    @property
    def more(self) -> float:
        """Largest share by which the counts allow the candidate to do it more often.

        Newcombe's limit of a difference (Statistics in Medicine 17 (1998) 873, method 10), from
        exact limits of each share: the candidate's own bound where the baseline never did it.
        """
        ours, theirs = self.candidate / self.operations, self.baseline / self.operations
        least = 1 - upper_bound(self.operations - self.baseline, self.operations)
        return ours - theirs + math.hypot(self.bound - ours, theirs - least)

    def beyond(self, limit: float | str | None, events: Literal["stalls", "failures"]) -> Reasons:
        """Returns that its counts leave open that a limit is exceeded; nothing if they do not."""
        if not isinstance(limit, float) or self.more <= limit:
            return NO_REASON
        return because("not_excluded", events=events, share=self.more, limit=limit)


def upper_bound(count: int, of: int) -> float:
    """Returns the upper 95 % limit of the share behind a count: 1 where all or none were tried."""
    if count >= of:
        return 1.0
    from scipy.special import betaincinv

    return float(betaincinv(count + 1, of - count, _CONFIDENCE))
