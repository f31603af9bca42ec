"""Model of a search over releases: its steps and its answer."""

from typing import Final, Literal

import pydantic

from orbax_bench_core.exit_codes import Outcome
from orbax_bench_core.files import ResultModel
from orbax_bench_core.gate import Word
from orbax_bench_core.reasons import NO_REASON, Reasons

ReleaseWord = Word | Literal["FAILED"]
"""Verdict of a comparison of two releases; FAILED when one could not be measured."""

Purpose = Literal["ends", "search", "confirm"]
"""Reason of a comparison: the bad release against the good one, a release in between against the
good one, or the first bad release against its direct predecessor."""

Conclusion = Literal["named", "range", "same", "undecided", "failed"]
"""Answer of a search: one release, a range of them, ends that do not differ, ends without a clear
verdict, or ends that could not be measured."""

_OUTCOMES: Final = {
    "named": Outcome(word="REGRESSION"),
    "range": Outcome(word="REGRESSION"),
    "same": Outcome(word="PASS"),
    "undecided": Outcome(word="INCONCLUSIVE"),
    "failed": Outcome(incomplete=True),
}


class OperationRatio(ResultModel):
    """Ratio of one operation between two releases."""

    operation: str
    ratio: float  # newer over older, so that above 1 is slower
    low: float | None = None  # lower end of its interval; None without one
    high: float | None = None  # upper end of it


class SearchStep(ResultModel):
    """One comparison of a search."""

    release: str  # the newer release
    against: str  # the older one
    purpose: Purpose  # what it was for
    outcome: ReleaseWord  # what it gave
    # why it is no PASS, or could not be measured; earlier files have a sentence under `why`
    reason: Reasons = pydantic.Field(
        default=NO_REASON, validation_alias=pydantic.AliasChoices("reason", "why")
    )
    # of the primary operations; of several points the worst
    ratios: tuple[OperationRatio, ...] = ()
    folder: str = ""  # run directory of the comparison


class ReleaseSearch(ResultModel):
    """Result of a search over releases."""

    package: str
    releases: tuple[str, ...]  # every release of the search, in order of version
    conclusion: Conclusion  # kind of the answer
    # the direct predecessor of a named release, the older end of a range, or the good release
    last_good: str
    first_bad: str | None  # A named release, or the newer end of a range; None without a regression
    undecided: tuple[str, ...] = ()  # releases inside a range that gave no verdict
    operations: tuple[str, ...] = ()  # the operations that regressed between the ends
    steps: tuple[SearchStep, ...]  # every comparison, in the order in which it was made

    @property
    def outcome(self) -> Outcome:
        """What an exit code is made of."""
        return _OUTCOMES[self.conclusion]
