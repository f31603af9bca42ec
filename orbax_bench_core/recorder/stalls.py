"""The rule by which a save is far beyond what is usual, for the job and for its diagnosis."""

import statistics
from collections.abc import Collection
from typing import Final

FEWEST: Final = 10
"""Operations before which nothing is usual."""


def stall_limit(seconds: Collection[float]) -> float:
    """Returns the seconds from which an operation is a stall, given those of others.

    Five medians, three times what nine of ten stay below, and a second on top: of the saves of a
    job that has no trouble none is beyond, also on a noisy machine.
    """
    most = sorted(seconds)[int(0.9 * (len(seconds) - 1))]
    return max(5 * statistics.median(seconds), 3 * most) + 1.0
