"""Summary of a run: its metrics, its operations, and how each of its points ended."""

import dataclasses
from collections.abc import Sequence

from orbax_bench_core.analysis.summary.hosts import Straggler
from orbax_bench_core.exit_codes import Outcome
from orbax_bench_core.records import ErrorInfo, OptionEffect, Verified


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary:
    """One metric of one operation of one point."""

    point_id: str  # id of the sweep point
    point: str  # name of the sweep point
    operation: str  # name of the operation
    metric: str  # name of the metric
    unit: str  # unit of all values here
    hosts: int  # number of hosts
    # number of values: all repeats on all hosts or, for the time of an operation as a whole, all
    # repeats
    n: int
    mean: float
    median: float
    q25: float  # lower quartile
    q75: float  # upper quartile
    p99: float  # 99th percentile, interpolated
    minimum: float  # smallest value
    maximum: float  # largest value

    @property
    def spread(self) -> float | None:
        """Interquartile range over the median, a ratio; None when it says nothing."""
        if self.n < 2 or self.median == 0:
            return None
        return (self.q75 - self.q25) / abs(self.median)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OperationSummary:
    """One operation of one point, over its measured repeats."""

    time: MetricSummary  # seconds that it took on the host that was slowest in each repeat
    # all bytes over all seconds, in GiB/s, never a mean of rates. The bytes are those that the
    # benchmark states or, where it states none at all, Orbax's own totals; None without either
    throughput: float | None
    straggler: Straggler | None  # the host that the others waited for; None for a single host
    # why the operation is not what it claims to be; None when nothing speaks against it
    flag: str | None
    store: str = ""  # what trouble an object store made; empty when it made none
    cache: str = ""  # state of the page cache that a load met; empty for what is no load
    seconds: tuple[float, ...] = ()  # seconds of each repeat, in the order measured


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One way in which repeats of a point failed."""

    error: ErrorInfo  # the error of the first of them
    repeats: tuple[int, ...]  # which repeats failed in this way


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PointStatus:
    """Outcome of the repeats of one point, each over all its hosts."""

    point_id: str  # id of the sweep point
    point: str  # name of the sweep point
    passed: int  # number of measured repeats that passed on every host
    failed: int  # number that failed on some host, or lack a host
    skipped: int  # number that were skipped
    reason: str  # why the first one failed or was skipped; empty when all passed
    # why the point is not what it claims to be; None when nothing speaks against it
    flag: str | None
    # what its restored values were compared with, in every repeat that counts
    verified: Verified = "none"
    effects: tuple[OptionEffect, ...] = ()  # what is proven of each option, in any repeat
    # the ways in which its repeats failed, those of which an error is known
    failures: tuple[Failure, ...] = ()
    measured: bool = True  # whether any repeat that passed has a sample
    retried: int = 0  # number of repeats that passed only when they were tried again
    retried_for: str = ""  # why the first attempt of the first of them failed; empty without any
    # number of repeats that passed while another point was measured on the machine
    not_alone: int = 0
    traced: int = 0  # number of warm-ups that were traced, beside those that it has anyway
    checkpoint: str = ""  # what people call what is saved and loaded
    # size of its arrays; None if no repeat that passed says it
    checkpoint_bytes: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Summary of a run."""

    # one entry per point, operation and metric, over all repeats and hosts
    metrics: Sequence[MetricSummary]
    operations: Sequence[OperationSummary]  # one entry per point and operation
    points: Sequence[PointStatus]  # how each point ended
    # files among the records that are no records of the run, a line each
    left_out: Sequence[str] = ()
    hosts: Sequence[str] = ()  # the machines that it ran on, a line per host; empty for one machine

    @property
    def measured(self) -> bool:
        """Whether any repeat of any point passed."""
        return any(point.passed for point in self.points)

    @property
    def outcome(self) -> Outcome:
        """What an exit code is made of."""
        failed = any(point.failed or (point.passed and not point.measured) for point in self.points)
        return Outcome(incomplete=bool(self.left_out) or failed or not self.measured)
