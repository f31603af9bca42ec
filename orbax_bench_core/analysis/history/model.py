"""Model of a history: series of past runs of the same point and operation."""

from __future__ import annotations

import datetime
import itertools
from typing import Literal

from orbax_bench_core.files import ResultModel
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.sweep import SweepEntry

Kind = Literal["ratio", "seconds"]


class PastRun(ResultModel):
    """Measurement of one past run.

    Attributes:
        run_id: The run.
        place: Its run directory, or its capture in a registry.
        began_at: When it began, UTC.
        value: Ratio of candidate to baseline, that of the verdict of the run; or median seconds.
        low: Lower end of the 95 % interval of the ratio, None where it is open; or lower quartile
            of the seconds.
        high: Upper end, or upper quartile.
        n: Blocks of a paired run that the ratio is made from; repeats of another.
        by_blocks: Whether the value is the median of the ratios of the blocks, for a verdict on so
            few blocks has none.
        ran: What was measured: versions, commit and environment by name; of the candidate.
        code: Revision of the code under test, for people; of the candidate. `unknown` where it was
            not recorded.
        reference: What was measured of the baseline; empty for a run that is not paired.
        machine: What it ran on.
    """

    run_id: str
    place: str
    began_at: datetime.datetime
    value: float
    low: float | None
    high: float | None
    n: int
    by_blocks: bool = False
    ran: dict[str, str]
    code: str = UNKNOWN
    reference: dict[str, str] = {}
    machine: dict[str, str] = {}


class PastOperation(ResultModel):
    """One operation of one point in one run.

    Attributes:
        series: What it is compared with over runs: the kind, the id of the reference, that of the
            candidate without its environment, and the operation.
        point: The point, or pair.
        past: The measurement.
    """

    series: tuple[Kind, str, str, str]
    point: SweepEntry
    past: PastRun


class Change(ResultModel):
    """Flag of a series, with the levels around it: a question, until a comparison confirms it.

    Attributes:
        index: Index of the first run after the change.
        flagged: Index of the run after which the flag was raised; it stands from then on.
        statistic: Rank statistic of that run's night.
        threshold: What it exceeded.
        before: Median value from the change before this one, or the start, up to this one.
        after: Median value from this change to the next, or to the end.
        differs: What ran after it and not before it, such as `orbax-checkpoint: 0.12.7 → 0.12.8`,
            in the nearest runs that differ, up to three away; empty when nothing that is recorded
            differs.
        question: Command of the paired comparison that confirms it; empty where a side cannot run
            again.
    """

    index: int
    flagged: int
    statistic: float
    threshold: float
    before: float
    after: float
    differs: tuple[str, ...] = ()
    question: str = ""

    @property
    def effect(self) -> float:
        """Relative change, such as 0.2 for 20 % slower."""
        return self.after / self.before - 1


class PastSeries(ResultModel):
    """One operation of one point over many runs.

    Attributes:
        point_id: Id of the point in the last run; of the pair in a paired run.
        point: Name of the point.
        operation: Name of the operation.
        kind: Whether values are ratios to a reference that ran at the same time, or seconds.
        baseline: What the reference is, for people; empty for seconds.
        candidate: What is held against it.
        primary: Whether the operation decides verdicts.
        runs: In the order of time.
        changes: In the order of time; none are looked for among seconds.
        remarks: What a reader must know of it, one line each.
    """

    point_id: str
    point: str
    operation: str
    kind: Kind
    baseline: str = ""
    candidate: str = ""
    primary: bool
    runs: tuple[PastRun, ...]
    changes: tuple[Change, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[tuple[PastRun, ...], ...]:
        """The runs between changes."""
        ends = [0, *(change.index for change in self.changes), len(self.runs)]
        return tuple(self.runs[start:end] for start, end in itertools.pairwise(ends))


class History(ResultModel):
    """All series of past runs.

    Attributes:
        significance: Chance of a flag within 60 nights when nothing has changed: of each series
            whose flags can be confirmed, and of all others together.
        series: Ratios first, in the order in which points first occur.
        num_runs: Number of runs.
        passed_over: What was not used and why, one line each.
        left_out: Files among the records that are no records of their run, a line each.
    """

    significance: float
    series: tuple[PastSeries, ...]
    num_runs: int
    passed_over: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
