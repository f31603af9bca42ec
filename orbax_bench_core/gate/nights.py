"""Failures and stalls of one pair over many nights, too rare to be seen in a single one.

Every order of the arms within a block was as likely as the others. If the arm makes no difference,
the following ratio is therefore 1 on average: the chance of the order that was drawn if the
candidate fails with `odds` times the odds of the baseline, over its chance if it does not. Nights
and blocks may differ in any way. The product of these ratios may be looked at after every night,
and a night may end at any look (G. Shafer, "Testing by betting", J. R. Statist. Soc. A 184 (2021)
407). A product of 1 or less starts again at 1, so that good nights do not hide the bad ones that
follow. Without any difference a finding then comes at most once in `NIGHTS` nights on average
(J. Shin, A. Ramdas and A. Rinaldo, "E-detectors", New England J. Statistics in Data Science 2
(2024) 229).

For failures that is exact. What counts as a stall depends on all operations of its night, and so
on when the night ended: there it is approximate, and simulated by `python -m perf.history`.
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
    """Counts the stalls of one operation among what did not fail; None if it has no blocks.

    Args:
        times: As `judge` takes them.
        labels: The same.
    """
    blocks = read_blocks(times, labels)
    if isinstance(blocks, tuple):
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
