"""Model of `async_study.json`."""

from __future__ import annotations

from typing import Final, Literal

from orbax_bench_core.exit_codes import Ending
from orbax_bench_core.files import ResultModel


class Documented(ResultModel):
    """One figure of Orbax's documentation.

    Attributes:
        num_parameters: Size of the model.
        saved: Share of the saving time that blocks training which async checkpointing saves.
    """

    num_parameters: int
    saved: float


DOCUMENTED: Final = (
    Documented(num_parameters=300 * 10**6, saved=0.40),
    Documented(num_parameters=8 * 10**9, saved=0.85),
    Documented(num_parameters=340 * 10**9, saved=0.97),
)
"""Orbax documentation, "Asynchronous Checkpointing", section "Why should I care?". It does not say
on which machines, with what storage or with which optimizer these were measured."""


class Seconds(ResultModel):
    """Median time of an operation over the repeats of one point.

    Attributes:
        n: Number of repeats.
        median: Their median.
        low: Lower end of the interval of the median.
        high: Upper end of it.
        coverage: How often such an interval holds the median of all repeats there could be: 0.95 or
            more from 6 repeats on.
    """

    n: int
    median: float
    low: float
    high: float
    coverage: float


class Ratio(ResultModel):
    """Background saves over blocking saves, or the share that they save.

    Attributes:
        value: Hodges-Lehmann estimate: the median over all pairs of one repeat of each kind.
        low: Lower end of its 95 % interval; None with fewer than 4 repeats of each kind or so.
        high: Upper end of it.
    """

    value: float
    low: float | None
    high: float | None

    @property
    def complement(self) -> Ratio:
        """One less this ratio: the share that is saved, from the share that is left."""
        return Ratio(
            value=1 - self.value,
            low=None if self.high is None else 1 - self.high,
            high=None if self.low is None else 1 - self.low,
        )


class SaveKind(ResultModel):
    """The repeats of one kind of save.

    Attributes:
        point_ids: Ids of the points; one, except where both arms of a pair measure the same.
        failed: Repeats that failed, or were skipped, and are not in the times.
        blocked: Seconds until the caller goes on: `save_blocking`.
        total: Seconds until the checkpoint is committed: `save`.
    """

    point_ids: tuple[str, ...]
    failed: int
    blocked: Seconds
    total: Seconds


class Size(ResultModel):
    """One checkpoint, saved in both ways.

    Attributes:
        checkpoint: Name of the checkpoint.
        num_parameters: Parameters of the model, without the optimizer's state; None where neither
            the suite nor the model's factory tells.
        num_bytes: Bytes of all arrays, as recorded.
        blocking: Saves that block until they are committed.
        background: Saves that go on in the background.
        saved: Share of the blocked time that saving in the background saves.
        overhead: Total time in the background over that of a blocking save.
    """

    checkpoint: str
    num_parameters: int | None
    num_bytes: int
    blocking: SaveKind
    background: SaveKind
    saved: Ratio
    overhead: Ratio


class Line(ResultModel):
    """Blocked time as a fixed part and a part that grows with the bytes.

    Attributes:
        fixed_s: Seconds that every save blocks, however small.
        s_per_byte: Seconds per byte; 0 where no growth was found.
        residual: Root mean square of the relative distance to the measured medians.
        worst: Largest such distance.
        flat: Whether one and the same time is inside the intervals of all medians: then growth with
            the bytes is not shown, and the speed says nothing.
    """

    fixed_s: float
    s_per_byte: float
    residual: float
    worst: float
    flat: bool

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes per second of the part that grows; None where no growth was found."""
        return 1 / self.s_per_byte if self.s_per_byte else None


class Fit(ResultModel):
    """A line per kind of save, through the medians of the blocked times.

    Attributes:
        blocking: That of blocking saves: how fast a checkpoint is written.
        background: That of saves in the background: what is done before the caller goes on.
        limit: Share saved that very large checkpoints would come to; None where the blocking saves
            did not grow with the bytes.
        holds: Whether both lines grow, and are near enough to the medians to be trusted.
    """

    blocking: Line
    background: Line
    limit: float | None
    holds: bool


class SizeSeries(ResultModel):
    """Checkpoints that were saved in the same way but for their size.

    Attributes:
        name: What tells the series from others.
        sizes: From the smallest to the largest.
        fit: Lines through them; None when there are too few.
    """

    name: str
    sizes: tuple[Size, ...]
    fit: Fit | None

    @property
    def by_parameters(self) -> bool:
        """Whether the parameters of all sizes are known; otherwise bytes tell them apart."""
        return all(size.num_parameters for size in self.sizes)


class AsyncStudy(ResultModel):
    """Result of an async study of one run.

    Attributes:
        schema_version: Version of this layout.
        run_id: The run.
        suite: Name of its suite.
        series: One per way of saving.
        notes: What is not in the series, and why.
        documented: What Orbax's documentation says.
    """

    schema_version: Literal[1] = 1
    run_id: str
    suite: str
    series: tuple[SizeSeries, ...]
    notes: tuple[str, ...] = ()
    documented: tuple[Documented, ...] = DOCUMENTED

    @property
    def outcome(self) -> Ending:
        """What an exit code is made of."""
        sizes = [size for series in self.series for size in series.sizes]
        return Ending(
            incomplete=any(each.blocking.failed or each.background.failed for each in sizes)
        )
