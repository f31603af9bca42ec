"""Model of a history: series of past runs of the same point and operation."""

import datetime
import itertools
from typing import Literal

from orbax_bench_core.analysis.history.changes import fewest_runs
from orbax_bench_core.files import ResultModel
from orbax_bench_core.gate import NightCount
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.sweep import SweepEntry

Kind = Literal["ratio", "seconds"]


class PastRun(ResultModel):
    """Measurement of one past run."""

    run_id: str
    place: str  # its run directory, or its capture in a registry
    began_at: datetime.datetime  # when it began, UTC
    # ratio of candidate to baseline, that of the verdict of the run; or median seconds
    value: float
    # lower end of the 95 % interval of the ratio, None where it is open; or lower quartile of the
    # seconds
    low: float | None
    high: float | None  # upper end, or upper quartile
    n: int  # blocks of a paired run that the ratio is made from; repeats of another
    # whether the value is the median of the ratios of the blocks, for a verdict on so few blocks
    # has none
    by_blocks: bool = False
    # what was measured: versions, commit and environment by name; of the candidate
    ran: dict[str, str]
    # revision of the code under test, for people; of the candidate. `unknown` where it was not
    # recorded.
    code: str = UNKNOWN
    # what was measured of the baseline; empty for a run that is not paired
    reference: dict[str, str] = {}
    machine: dict[str, str] = {}  # what it ran on
    # first attempts of the point that failed in either arm; None for a run that is not paired
    failures: NightCount | None = None
    stalls: NightCount | None = None  # stalls of the operation in either arm


class PastOperation(ResultModel):
    """One operation of one point in one run."""

    # what it is compared with over runs: the kind, the id of the reference, that of the candidate
    # without its environment, and the operation
    series: tuple[Kind, str, str, str]
    point: SweepEntry  # the point, or pair
    past: PastRun  # the measurement


class Change(ResultModel):
    """Flag of a series, with the levels around it: a question, until a comparison confirms it."""

    index: int  # index of the first run after the change
    flagged: int  # index of the run after which the flag was raised; it stands from then on
    statistic: float  # rank statistic of that run's night
    threshold: float  # what it exceeded
    before: float  # median value from the change before this one, or the start, up to this one
    after: float  # median value from this change to the next, or to the end
    # what ran after it and not before it, such as `orbax-checkpoint: 0.12.7 → 0.12.8`, in the
    # nearest runs that differ, up to three away; empty when nothing that is recorded differs
    differs: tuple[str, ...] = ()
    # command of the paired comparison that confirms it; empty if a side cannot run again
    question: str = ""

    @property
    def effect(self) -> float:
        """Relative change, such as 0.2 for 20 % slower."""
        return self.after / self.before - 1


class Excess(ResultModel):
    """Runs in a row in which the candidate failed or stalled more often than chance explains."""

    kind: Literal["failures", "stalls"]
    first: int  # index of the first of these runs
    last: int  # index of the last, after which it was found
    candidate: int  # how often the candidate did it in these runs
    baseline: int  # how often the baseline did it
    operations: int  # operations of each arm, or attempts


class PastSeries(ResultModel):
    """One operation of one point over many runs."""

    point_id: str  # id of the point in the last run; of the pair in a paired run
    point: str
    operation: str
    kind: Kind  # whether values are ratios to a reference that ran at the same time, or seconds
    baseline: str = ""  # what the reference is, for people; empty for seconds
    candidate: str = ""  # what is held against it
    primary: bool  # whether the operation decides verdicts
    runs: tuple[PastRun, ...]  # in the order of time
    changes: tuple[Change, ...] = ()  # in the order of time; none are looked for among seconds
    excesses: tuple[Excess, ...] = ()  # in the order of time

    @property
    def parts(self) -> tuple[tuple[PastRun, ...], ...]:
        """The runs between changes."""
        ends = [0, *(change.index for change in self.changes), len(self.runs)]
        return tuple(self.runs[start:end] for start, end in itertools.pairwise(ends))


class History(ResultModel):
    """All series of past runs."""

    # chance of a flag within 60 nights when nothing has changed: of each series whose flags can be
    # confirmed, and of all others together
    significance: float
    series: tuple[PastSeries, ...]  # ratios first, in the order in which points first occur
    num_runs: int  # number of runs
    passed_over: tuple[str, ...] = ()  # places of runs in which nothing has passed
    # files among the records that are no records of their run, a line each
    left_out: tuple[str, ...] = ()

    @property
    def fewest_runs(self) -> int:
        """Runs of a ratio before which no change of it can be flagged."""
        ratios = sum(each.kind == "ratio" for each in self.series)
        return fewest_runs(self.significance / max(1, ratios))
