"""Model of `bisect.json`: a search over releases, step by step."""

from __future__ import annotations

from typing import Final, Literal

from orbax_bench_core.exit_codes import Ending
from orbax_bench_core.files import ResultModel
from orbax_bench_core.gate import Word

ReleaseWord = Word | Literal["FAILED"]
"""Verdict of a comparison of two releases; FAILED when one could not be measured."""

Purpose = Literal["ends", "search", "confirm"]
"""Reason of a comparison: the bad release against the good one, a release in between against the
good one, or the first bad release against its direct predecessor."""

Conclusion = Literal["named", "range", "same", "undecided", "failed"]
"""Answer of a search: one release, a range of them, ends that do not differ, ends without a clear
verdict, or ends that could not be measured."""

_OUTCOMES: Final = {
    "named": Ending(word="REGRESSION"),
    "range": Ending(word="REGRESSION"),
    "same": Ending(word="PASS"),
    "undecided": Ending(word="INCONCLUSIVE"),
    "failed": Ending(incomplete=True),
}


class OperationRatio(ResultModel):
    """Ratio of one operation between two releases.

    Attributes:
        operation: Name of the operation.
        ratio: Newer over older, so that above 1 is slower.
        low: Lower end of its interval; None without one.
        high: Upper end of it.
    """

    operation: str
    ratio: float
    low: float | None = None
    high: float | None = None


class SearchStep(ResultModel):
    """One comparison of a search.

    Attributes:
        release: The newer release.
        against: The older one.
        purpose: What it was for.
        outcome: What it gave.
        why: The verdict in a sentence, or why there is none.
        ratios: Of the primary operations; of several points the worst.
        folder: Run directory of the comparison.
    """

    release: str
    against: str
    purpose: Purpose
    outcome: ReleaseWord
    why: str = ""
    ratios: tuple[OperationRatio, ...] = ()
    folder: str = ""


class ReleaseSearch(ResultModel):
    """Result of a search over releases.

    Attributes:
        package: The package.
        releases: Every release of the search, in order of version.
        conclusion: Kind of the answer.
        last_good: The direct predecessor of a named release, the older end of a range, or the good
            release.
        first_bad: A named release, or the newer end of a range; None without a regression.
        undecided: Releases inside a range that gave no verdict.
        operations: The operations that regressed between the ends.
        steps: Every comparison, in the order in which it was made.
    """

    package: str
    releases: tuple[str, ...]
    conclusion: Conclusion
    last_good: str
    first_bad: str | None
    undecided: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    steps: tuple[SearchStep, ...]

    @property
    def outcome(self) -> Ending:
        """What an exit code is made of."""
        return _OUTCOMES[self.conclusion]
