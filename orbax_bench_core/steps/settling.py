"""Status of a run: whether it is complete, and the entries that it still lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from orbax_bench_core.analysis.verdicts import judge_point
from orbax_bench_core.records import PointRecords, Run, RunInfo
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
    return [point.entry for point in run.points() if not is_finished(point, run.info)]


def is_finished(point: PointRecords, info: RunInfo) -> bool:
    """Returns whether an entry has all its repeats, or its verdict."""
    measured = [repeat for repeat in point.repeats if not repeat.warmup]
    if isinstance(point.entry, Pair):
        verdict = judge_point(point.entry, measured, info)
        return verdict.settled and not verdict.failed
    return sum(repeat.finished for repeat in measured) >= info.num_repeats
