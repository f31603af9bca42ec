"""Finding the first release that is slower than a good one, by verdicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal

from orbax_bench_core.compare.verdict import Word

Outcome = Word | Literal["FAILED"]
"""What a release says against the good one; FAILED when it could not be measured."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Found:
    """Where a search has ended.

    Attributes:
        last_good: The newest release that passes against the good one; the good one itself when
            no other does.
        first_bad: The oldest release that has regressed; None when the bad one has not.
        undecided: Releases between the two that gave no verdict.
        outcomes: What every release said that was measured, in the order of measurement.
    """

    last_good: str
    first_bad: str | None
    undecided: tuple[str, ...]
    outcomes: dict[str, Outcome]


def bisect(releases: Sequence[str], outcome: Callable[[str], Outcome]) -> Found:
    """Searches for the first release that has regressed against the first of the list.

    The last one is measured first: without a regression there is nothing to look for. Every step
    then halves what is left. A release that gives no verdict, or cannot be measured, is passed over
    in favour of the nearest one to the middle that has not been tried.

    Args:
        releases: At least two, from the good one to the bad one, in order of version.
        outcome: Measures a release against the good one.
    """
    good, bad = 0, len(releases) - 1
    outcomes = {releases[bad]: outcome(releases[bad])}
    if outcomes[releases[bad]] != "REGRESSION":
        return Found(
            last_good=releases[good], first_bad=None, undecided=(), outcomes=dict(outcomes)
        )
    while untried := [i for i in range(good + 1, bad) if releases[i] not in outcomes]:
        middle = min(untried, key=lambda index: abs(2 * index - good - bad))
        found = outcomes[releases[middle]] = outcome(releases[middle])
        if found == "REGRESSION":
            bad = middle
        elif found == "PASS":
            good = middle
    return Found(
        last_good=releases[good],
        first_bad=releases[bad],
        undecided=tuple(releases[good + 1 : bad]),
        outcomes=outcomes,
    )
