"""Summary of a run: its metrics, its operations, and how each of its points ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from orbax_bench_core.analysis.summary.hosts import Straggler
from orbax_bench_core.exit_codes import Ending
from orbax_bench_core.records import ErrorInfo, OptionEffect, Verified


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary:
    """One metric of one operation of one point.

    Attributes:
        point_id: Id of the sweep point.
        point: Name of the sweep point.
        operation: Name of the operation.
        metric: Name of the metric.
        unit: Unit of all values here.
        hosts: Number of hosts.
        n: Number of values: all repeats on all hosts or, for the time of an operation as a whole,
            all repeats.
        mean: Mean.
        median: Median.
        q25: Lower quartile.
        q75: Upper quartile.
        p99: 99th percentile, interpolated.
        minimum: Smallest value.
        maximum: Largest value.
    """

    point_id: str
    point: str
    operation: str
    metric: str
    unit: str
    hosts: int
    n: int
    mean: float
    median: float
    q25: float
    q75: float
    p99: float
    minimum: float
    maximum: float

    @property
    def spread(self) -> float | None:
        """Interquartile range over the median, a ratio; None when it says nothing."""
        if self.n < 2 or self.median == 0:
            return None
        return (self.q75 - self.q25) / abs(self.median)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OperationSummary:
    """One operation of one point, over its measured repeats.

    Attributes:
        time: Seconds that it took on the host that was slowest in each repeat.
        throughput: All bytes over all seconds, in GiB/s, never a mean of rates. The bytes are those
            that the benchmark states or, where it states none at all, Orbax's own totals; None
            without either.
        straggler: The host that the others waited for; None for a single host.
        flag: Why the operation is not what it claims to be; None when nothing speaks against it.
        store: What trouble an object store made; empty when it made none.
        seconds: Seconds of each repeat, in the order measured.
    """

    time: MetricSummary
    throughput: float | None
    straggler: Straggler | None
    flag: str | None
    store: str = ""
    seconds: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One way in which repeats of a point failed.

    Attributes:
        error: The error of the first of them.
        repeats: Which repeats failed in this way.
    """

    error: ErrorInfo
    repeats: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PointStatus:
    """Outcome of the repeats of one point, each over all its hosts.

    Attributes:
        point_id: Id of the sweep point.
        point: Name of the sweep point.
        passed: Number of measured repeats that passed on every host.
        failed: Number that failed on some host, or lack a host.
        skipped: Number that were skipped.
        reason: Why the first one failed or was skipped; empty when all passed.
        flag: Why the point is not what it claims to be; None when nothing speaks against it.
        verified: What its restored values were compared with, in every repeat that counts.
        effects: What is proven of each option, in any repeat.
        failures: The ways in which its repeats failed, those of which an error is known.
        measured: Whether any repeat that passed has a sample.
        blocks: The blocks of a paired comparison in which every operation of this arm passed.
        retried: Number of repeats that passed only when they were tried again.
        retried_for: Why the first attempt of the first of them failed; empty without any.
        not_alone: Number of repeats that passed while another point was measured on the machine.
        traced: Number of warm-ups that were traced, beside those that it has anyway.
        checkpoint: What people call what is saved and loaded.
        checkpoint_bytes: Size of its arrays; None where no repeat that passed says it.
    """

    point_id: str
    point: str
    passed: int
    failed: int
    skipped: int
    reason: str
    flag: str | None
    verified: Verified = "none"
    effects: tuple[OptionEffect, ...] = ()
    failures: tuple[Failure, ...] = ()
    measured: bool = True
    blocks: frozenset[int] = frozenset()
    retried: int = 0
    retried_for: str = ""
    not_alone: int = 0
    traced: int = 0
    checkpoint: str = ""
    checkpoint_bytes: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Summary of a run.

    Attributes:
        metrics: One entry per point, operation and metric, over all repeats and hosts.
        operations: One entry per point and operation.
        points: How each point ended.
        left_out: Files among the records that are no records of the run, a line each.
        hosts: The machines that it ran on, a line per host; empty for one machine.
    """

    metrics: Sequence[MetricSummary]
    operations: Sequence[OperationSummary]
    points: Sequence[PointStatus]
    left_out: Sequence[str] = ()
    hosts: Sequence[str] = ()

    @property
    def measured(self) -> bool:
        """Whether any repeat of any point passed."""
        return any(point.passed for point in self.points)

    @property
    def outcome(self) -> Ending:
        """What an exit code is made of."""
        failed = any(point.failed or (point.passed and not point.measured) for point in self.points)
        return Ending(incomplete=bool(self.left_out) or failed or not self.measured)
