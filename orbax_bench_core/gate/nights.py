"""Failures and stalls of one pair over many nights, too rare to be seen in a single one.

Within a block every order of the arms was as likely, so if the arm makes no difference, the ratio
of the chance of the order that was drawn, were the candidate `odds` times as likely to fail, to
that without any difference is 1 in the mean, whatever else differs from block to block or night to
night. The product of such ratios may be looked at every night, and a night may stop when it likes
(G. Shafer, "Testing by betting", J. R. Statist. Soc. A 184 (2021) 407). It begins anew wherever
it is below 1, so that good nights do not hide the bad ones that follow; an alarm without cause
then comes once in `NIGHTS` nights at most, on average (J. Shin, A. Ramdas and A. Rinaldo,
"E-detectors", New England J. Statistics in Data Science 2 (2024) 229).
"""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from orbax_bench_core.files import ResultModel
from orbax_bench_core.gate.blocks import Bools, read_blocks
from orbax_bench_core.gate.randomisation import possible_sums
from orbax_bench_core.gate.stalls import find_stalls

NIGHTS: Final = 1000
"""Nights without any difference in which a finding comes once at most, on average."""

_ODDS: Final = (2.0, 5.0, 50.0)


class NightCount(ResultModel):
    """How often something bad happened in one night, and what that says of the candidate."""

    candidate: int
    baseline: int
    operations: int  # of each arm
    evidence: tuple[float, ...]  # log of the ratio of chances, for each of `_ODDS`

    @classmethod
    def of(cls, seen: Bools, labels: Bools) -> "NightCount":
        """Counts what was seen, shape (blocks, slots, operations); labels (blocks, slots)."""
        scores = seen.sum(axis=2)
        candidate = int(scores[labels].sum())
        evidence = [0.0] * len(_ODDS)
        if scores.any():
            sums = possible_sums(scores, labels)
            for index, odds in enumerate(_ODDS):
                weights = np.exp(math.log(odds) * (sums - sums.max(axis=1, keepdims=True)))
                most = math.log(odds) * float(sums.max(axis=1).sum())
                evidence[index] = (
                    math.log(odds) * candidate - most - float(np.log(weights.mean(axis=1)).sum())
                )
        return cls(
            candidate=candidate,
            baseline=int(scores.sum()) - candidate,
            operations=int(labels.sum()) * seen.shape[2],
            evidence=tuple(evidence),
        )


def stalls_of_night(times: Any, labels: Bools) -> NightCount | None:
    """Counts the stalls of one operation among what did not fail; None where it has no blocks.

    Args:
        times: As `judge` takes them.
        labels: The same.
    """
    blocks = read_blocks(times, labels)
    if isinstance(blocks, str):
        return None
    return NightCount.of(find_stalls(blocks)[0] & ~blocks.failed, blocks.candidate)


def over_nights(nights: Sequence[NightCount]) -> tuple[tuple[int, int], ...]:
    """Returns the first and last night of each stretch in which the candidate is worse."""
    found, begin = [], 0
    products = np.zeros(len(_ODDS))
    for index, night in enumerate(nights):
        products = products + night.evidence
        mean = float(np.logaddexp.reduce(products)) - math.log(len(_ODDS))
        if mean >= math.log(NIGHTS):
            found.append((begin, index))
        if mean <= 0 or mean >= math.log(NIGHTS):
            products, begin = np.zeros(len(_ODDS)), index + 1
    return tuple(found)
