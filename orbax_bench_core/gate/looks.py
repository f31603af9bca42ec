"""Group-sequential looks: when the data are looked at, and the error that each look may spend.

Every look is a chance to be wrong, so the looks share the error. A comparison whose times are open
ends at the last look of the rule. One more, at 5/3 of its operations, follows up stalls, failures
and limits on them once the times pass; the times are tested there as well, with a twentieth of
their error: in as many more operations the ratio at which they pass is then about the same.

The first of n looks of the rule may spend 1 / n of alpha, so that a large effect is decided there,
although few blocks have few orders: three primary operations and four blocks of lives need .0008 of
1 %, for four blocks have 6 to the 4th orders. The others share the rest, little at first and more
later. With four looks and alpha 1 % that is .0025, .0012, .0023, .0035, and .0005 for the one more.
The sum bounds the error of all looks by Bonferroni's inequality, whatever the dependence between
them.

Stalls are rarer than times are noisy: few are seen at the first look, which has little of their
error. Their shares at five looks are .05, .1, .2, .25 and .4.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Final

from orbax_bench_core.config import PER_ARM, GateRule

_FIVE_LOOKS: Final = (0.05, 0.1, 0.2, 0.25, 0.4)

_ONE_MORE: Final = 0.05
"""Share of alpha of the look after those of the rule."""

_ROUNDING: Final = 1 + 1e-12


@dataclasses.dataclass(frozen=True, slots=True)
class Schedule:
    """Looks at one comparison."""

    looks: tuple[int, ...]  # operations per arm at the looks, the one more included
    per_life: int  # operations of one slot of a block
    shares: tuple[float, ...]  # share of alpha of each look at times and failures; they sum to 1
    stall_shares: tuple[float, ...]  # share of alpha of each look at stalls; they sum to 1

    @classmethod
    def of(cls, rule: GateRule, per_life: int = 1) -> Schedule:
        """Returns the looks of a rule; see `GateRule.looks_of`."""
        return _schedule(rule.looks_at_all(per_life), per_life)

    @property
    def last(self) -> int:
        """Index of the last look of the rule, at which a comparison ends whose times are open."""
        return len(self.looks) - 2

    def blocks(self, look: int) -> int:
        """Returns the blocks that a look takes."""
        return self.looks[look] // (PER_ARM * self.per_life)

    def reached(self, blocks: int) -> int:
        """Returns how many looks so many blocks allow."""
        return sum(self.blocks(look) <= blocks for look in range(len(self.looks)))


@functools.cache
def _schedule(looks: tuple[int, ...], per_life: int) -> Schedule:
    count = len(looks) - 1
    first = 1 / count
    if count == 1:
        first -= _ONE_MORE
    later = 1 - first - _ONE_MORE
    shares = (first, *(later * share for share in _linear(count - 1)), _ONE_MORE)
    stalls = _FIVE_LOOKS if count + 1 == len(_FIVE_LOOKS) else _linear(count + 1)
    return Schedule(looks, per_life, shares, stalls)


def _linear(looks: int) -> tuple[float, ...]:
    return tuple(2 * (index + 1) / (looks * (looks + 1)) for index in range(looks))


def within(p: float | None, alpha: float) -> bool:
    """Returns whether a p-value is at most alpha, whatever the rounding of their last digits."""
    return p is not None and p <= alpha * _ROUNDING
