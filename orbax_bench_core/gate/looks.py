"""Group-sequential looks: when the data are looked at, and the error that each look may spend.

Every look is a chance to be wrong, so the looks share the error. A comparison whose times are open
ends at the last look of the rule. One more, at 5/3 of its operations, follows up stalls, failures
and limits on them once the times pass; the times are tested there as well, with a twentieth of
their error: in as many more operations the ratio at which they pass is then about the same.

Two more looks, each at 5/3 of the one before, are reserved for `--more`: an INCONCLUSIVE comparison
goes on to the next look that is left, the one more included, with all that was measured. The first
of them has a fortieth of the error, and so has the second.

The first of n looks of the rule may spend 1 / n of alpha, so that a large effect is decided there,
although few blocks have few orders: three primary operations and four blocks of lives need .0008 of
1 %, for four blocks have 6 to the 4th orders. The others share the rest, little at first and more
later. With four looks and alpha 1 % that is .0025, .0011, .0022, .0033, .0005 for the one more, and
.00025 for each that is reserved.

Going on keeps the level. Let H be a null hypothesis, p_k its p-value from all that is measured up
to look k, and alpha_k the level of that look. Every look has its number of operations and its level
before anything is measured, used or not, and p_k is valid there: P(p_k <= alpha_k) <= alpha_k under
H, since the order of the arms in all blocks up to it was drawn at random. However it is decided
which looks are made (by verdicts, by a person who wants another answer, by an interruption), a
false rejection is at one of them. So it lies in the union of the events p_k <= alpha_k over all
looks that may ever be made, and by Bonferroni's inequality

    P(H is rejected at any look) <= sum of alpha_k = alpha,

whatever the dependence between the looks. The decision to go on may depend on the data because it
changes neither the place nor the level of any look: what `--more` is given is rounded up to one of
them, and once they are used up nothing can be added. The same holds for PASS with its own alpha,
for stalls and for failures. It is the spending of error by a plan that is made before the data (K.
K. G. Lan and D. L. DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70
(1983) 659), without their gain from the dependence of the looks, which changing noise could void.

Stalls are rarer than times are noisy: few are seen at the first look, which has little of their
error. Their shares at all looks are .05, .1, .2, .2, .4, .025 and .025: as many stalls of the
candidate against none of the baseline, 11, 10, 9, 9, 8, 12 and 12, are then a REGRESSION.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Final

from orbax_bench_core.config import PER_ARM, GateRule

_STALLS: Final = (0.05, 0.1, 0.2, 0.2, 0.4)
"""Shares of alpha of stalls at the default number of looks, without those of `--more`."""

_ONE_MORE: Final = 0.05
"""Share of alpha of the look after those of the rule."""

_RESERVED: Final = (0.025, 0.025)
"""Shares of alpha of the looks of `--more` after that."""

_ROUNDING: Final = 1 + 1e-12


@dataclasses.dataclass(frozen=True, slots=True)
class Schedule:
    """Looks at one comparison."""

    looks: tuple[int, ...]  # operations per arm at the looks, those of `--more` included
    per_life: int  # operations of one slot of a block
    shares: tuple[float, ...]  # share of alpha of each look at times and failures; they sum to 1
    stall_shares: tuple[float, ...]  # share of alpha of each look at stalls; they sum to 1

    @classmethod
    def of(cls, rule: GateRule, per_life: int = 1) -> Schedule:
        """Returns the looks of a rule; see `GateRule.looks_with_more`."""
        return _schedule(rule.looks_with_more(per_life), per_life)

    @property
    def last(self) -> int:
        """Index of the last look of the rule, at which a comparison ends whose times are open."""
        return self.one_more - 1

    @property
    def one_more(self) -> int:
        """Index of the look after it, the last that a comparison makes by itself."""
        return len(self.looks) - 1 - len(_RESERVED)

    def blocks(self, look: int) -> int:
        """Returns the blocks that a look takes."""
        return self.looks[look] // (PER_ARM * self.per_life)

    def reached(self, blocks: int) -> int:
        """Returns how many looks so many blocks allow."""
        return sum(self.blocks(look) <= blocks for look in range(len(self.looks)))


@functools.cache
def _schedule(looks: tuple[int, ...], per_life: int) -> Schedule:
    after = (_ONE_MORE, *_RESERVED)
    count, rest = len(looks) - len(after), 1 - sum(after)
    first = rest if count == 1 else 1 / count
    shares = (first, *((rest - first) * share for share in _linear(count - 1)), *after)
    rest = 1 - sum(_RESERVED)
    stalls = [rest * share for share in _linear(count + 1)]
    if len(stalls) == len(_STALLS):
        stalls = list(_STALLS)
    return Schedule(looks, per_life, shares, (*stalls, *_RESERVED))


def _linear(looks: int) -> tuple[float, ...]:
    return tuple(2 * (index + 1) / (looks * (looks + 1)) for index in range(looks))


def within(p: float | None, alpha: float) -> bool:
    """Returns whether a p-value is at most alpha, whatever the rounding of their last digits."""
    return p is not None and p <= alpha * _ROUNDING
