"""Status of a run: whether it is complete, and the entries that it still lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from orbax_bench_core.analysis.verdicts import judge_point
from orbax_bench_core.records import Repeat, Run, RunInfo
from orbax_bench_core.sweep import Pair, SweepEntry


def settle(run: Run) -> RunInfo:
    """Writes into `run.json` whether a run that no longer goes on came to its end.

    It is complete when every point has all its repeats, or every pair has been settled or has made
    its last look; a pair of which both arms failed has said nothing.
    """
    return note_status(run, unfinished(run))


def note_status(run: Run, lacking: Sequence[SweepEntry]) -> RunInfo:
    """Writes into `run.json` that a run is complete, unless it lacks some of its entries."""
    status: Literal["complete", "incomplete"] = "incomplete" if lacking else "complete"
    run.directory.set_status(status)
    return run.info.model_copy(update={"status": status})


def unfinished(run: Run) -> list[SweepEntry]:
    """Returns the entries of a run that lack repeats, or have no verdict yet."""
    points = Unfinished(run)
    for entry, repeats in run.by_entry():
        points.add(entry, repeats)
    return points.found


class Unfinished:
    """The entries of a run that are not finished, as far as they were looked at.

    Attributes:
        found: They, in the order in which they were added.
    """

    def __init__(self, run: Run) -> None:
        self._info = run.info
        self.found: list[SweepEntry] = []

    def add(self, entry: SweepEntry, repeats: Sequence[Repeat]) -> None:
        """Looks at an entry by all its repeats."""
        measured = [repeat for repeat in repeats if not repeat.warmup]
        if not self._settled(entry, measured):
            self.found.append(entry)

    def _settled(self, entry: SweepEntry, measured: Sequence[Repeat]) -> bool:
        if isinstance(entry, Pair):
            verdict = judge_point(entry, measured, self._info)
            return verdict.settled and not verdict.failed
        return sum(repeat.finished for repeat in measured) >= self._info.num_repeats
