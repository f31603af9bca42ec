"""Model of `async_study.json`."""

from typing import Final, Literal

from orbax_bench_core.exit_codes import Outcome
from orbax_bench_core.files import ResultModel
from orbax_bench_core.reasons import NO_REASON, Reasons


class Documented(ResultModel):
    """One figure of Orbax's documentation."""

    num_parameters: int  # size of the model
    saved: float  # share of the saving time that blocks training which async checkpointing saves


DOCUMENTED: Final = (
    Documented(num_parameters=300 * 10**6, saved=0.40),
    Documented(num_parameters=8 * 10**9, saved=0.85),
    Documented(num_parameters=340 * 10**9, saved=0.97),
)
"""Orbax documentation, "Asynchronous Checkpointing", section "Why should I care?". It does not say
on which machines, with what storage or with which optimizer these were measured."""


class Seconds(ResultModel):
    """Median time of an operation over the repeats of one point."""

    n: int  # number of repeats
    median: float  # their median
    low: float  # lower end of the interval of the median
    high: float  # upper end of it
    # how often such an interval holds the median of all repeats there could be: 0.95 or more from 6
    # repeats on
    coverage: float


class Ratio(ResultModel):
    """Background saves over blocking saves, or the share that they save."""

    value: float  # hodges-Lehmann estimate: the median over all pairs of one repeat of each kind
    # lower end of its 95 % interval; None with fewer than 4 repeats of each kind or so
    low: float | None
    high: float | None  # upper end of it

    @property
    def complement(self) -> "Ratio":
        """One less this ratio: the share that is saved, from the share that is left."""
        return Ratio(
            value=1 - self.value,
            low=None if self.high is None else 1 - self.high,
            high=None if self.low is None else 1 - self.low,
        )


class SaveKind(ResultModel):
    """The repeats of one kind of save."""

    # ids of the points; one, except where both arms of a pair measure the same
    point_ids: tuple[str, ...]
    failed: int  # repeats that failed, or were skipped, and are not in the times
    blocked: Seconds  # seconds until the caller goes on: `save_blocking`
    total: Seconds  # seconds until the checkpoint is committed: `save`


class Size(ResultModel):
    """One checkpoint, saved in both ways."""

    checkpoint: str
    # parameters of the model, without the optimizer's state; None if neither the suite nor the
    # model's factory tells
    num_parameters: int | None
    num_bytes: int  # bytes of all arrays, as recorded
    blocking: SaveKind  # saves that block until they are committed
    background: SaveKind  # saves that go on in the background
    saved: Ratio  # share of the blocked time that saving in the background saves
    overhead: Ratio  # total time in the background over that of a blocking save


class Line(ResultModel):
    """Blocked time as a fixed part and a part that grows with the bytes."""

    fixed_s: float  # seconds that every save blocks, however small
    s_per_byte: float  # seconds per byte; 0 where no growth was found
    residual: float  # root mean square of the relative distance to the measured medians
    worst: float  # largest such distance
    # whether one and the same time is inside the intervals of all medians: then growth with the
    # bytes is not shown, and the speed says nothing
    flat: bool

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes per second of the part that grows; None if no growth was found."""
        return 1 / self.s_per_byte if self.s_per_byte else None


class Fit(ResultModel):
    """A line per kind of save, through the medians of the blocked times."""

    blocking: Line  # that of blocking saves: how fast a checkpoint is written
    background: Line  # that of saves in the background: what is done before the caller goes on
    # share saved that very large checkpoints would come to; None if the blocking saves did not
    # grow with the bytes
    limit: float | None
    holds: bool  # whether both lines grow, and are near enough to the medians to be trusted


class SizeSeries(ResultModel):
    """Checkpoints that were saved in the same way but for their size."""

    name: str  # what tells the series from others
    sizes: tuple[Size, ...]  # from the smallest to the largest
    fit: Fit | None  # lines through them; None when there are too few

    @property
    def by_parameters(self) -> bool:
        """Whether the parameters of all sizes are known; otherwise bytes tell them apart."""
        return all(size.num_parameters for size in self.sizes)


class AsyncStudy(ResultModel):
    """Result of an async study of one run."""

    schema_version: Literal[1, 2] = 2  # version of this layout; 1 had notes in sentences
    run_id: str
    suite: str  # name of its suite
    series: tuple[SizeSeries, ...]  # one per way of saving
    notes: Reasons = NO_REASON  # what is not in the series, and why
    documented: tuple[Documented, ...] = DOCUMENTED  # what Orbax's documentation says

    @property
    def outcome(self) -> Outcome:
        """What an exit code is made of."""
        sizes = [size for series in self.series for size in series.sizes]
        return Outcome(
            incomplete=any(each.blocking.failed or each.background.failed for each in sizes)
        )
