"""Model of `soak.json`: growth per save of one process, and the verdict on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from orbax_bench_core.exit_codes import Ending
from orbax_bench_core.files import ResultModel

if TYPE_CHECKING:
    import pandas

SoakWord = Literal["LEAK", "PASS", "INCONCLUSIVE"]

Level = Literal["rss", "device", "anon", "open_files", "threads", "time", "files_left"]
"""Quantities that may grow: memory of the process, of the device with most, of the control group;
descriptors and threads of the process; seconds of a save; files on storage after a repeat."""


class Slope(ResultModel):
    """Growth of a level per save.

    Attributes:
        per_save: Theil-Sen slope, in the unit of the level.
        low: Lower end of its 95 % interval.
        high: Upper end of it.
    """

    per_save: float
    low: float
    high: float


class Growth(ResultModel):
    """One level over the saves of a process.

    Attributes:
        level: Which.
        unit: Its unit: `MiB`, `count` or `s`.
        first: Median of the first ten saves that count.
        last: Median of the last ten.
        whole: Growth over all saves that count.
        half: Growth over the second half of them.
        limit: Growth per save that is allowed; None where the level is shown and not judged.
        word: LEAK where both slopes lie above the limit, PASS where both lie below it, with their
            intervals; None without a limit.
        more: About how many saves a verdict takes where there is none; None where more saves would
            not bring one, or one is there.
    """

    level: Level
    unit: str
    first: float
    last: float
    whole: Slope
    half: Slope
    limit: float | None = None
    word: SoakWord | None = None
    more: int | None = None


class SoakSeries(ResultModel):
    """The saves of one process: the longest life of those that measured one point on one host.

    Attributes:
        series_id: Id of the sweep point.
        name: Its name.
        host: Index of the host process.
        worker: Id of the process; empty in records that do not tell.
        operation: The operation that counts as a save.
        saves: Saves of this process.
        dropped: How many of them come before the first that counts.
        lives: Saves of every process that measured the point on this host, in order.
        failed: Repeats that failed.
        growths: Each level; none where there are too few saves.
        levels: Memory of the process after each save, in MiB, for the figure; at most 400 means.
        word: The verdict.
        needed: About how many saves a verdict takes; None where there is one, or none will come.
    """

    series_id: str
    name: str
    host: int
    worker: str
    operation: str
    saves: int
    dropped: int
    lives: tuple[int, ...]
    failed: int
    growths: tuple[Growth, ...]
    levels: tuple[float, ...]
    word: SoakWord
    needed: int | None = None

    def growth(self, level: Level) -> Growth | None:
        """Returns one level; None where it was not measured."""
        return next((growth for growth in self.growths if growth.level == level), None)


class Soak(ResultModel):
    """Result of a soak.

    Attributes:
        schema_version: Version of this layout.
        run_id: The run.
        suite: Name of its suite.
        limit_mib: Growth of memory per save that is allowed, in MiB.
        word: LEAK if any process leaks, PASS if all pass.
        series: One per point and host.
        notes: What a reader must know beside them.
    """

    schema_version: Literal[1] = 1
    run_id: str
    suite: str
    limit_mib: float
    word: SoakWord
    series: tuple[SoakSeries, ...]
    notes: tuple[str, ...] = ()

    @property
    def outcome(self) -> Ending:
        """What an exit code is made of."""
        return Ending(word=self.word, incomplete=any(series.failed for series in self.series))

    def table(self) -> pandas.DataFrame:
        """Returns one row per point, host and level, with both slopes and the verdict."""
        import pandas

        return pandas.DataFrame(
            [
                {
                    "series_id": series.series_id,
                    "series": series.name,
                    "host": series.host,
                    "saves": series.saves,
                    "level": growth.level,
                    "unit": growth.unit,
                    "first": growth.first,
                    "last": growth.last,
                    "per_save": growth.whole.per_save,
                    "low": growth.whole.low,
                    "high": growth.whole.high,
                    "half_per_save": growth.half.per_save,
                    "half_low": growth.half.low,
                    "half_high": growth.half.high,
                    "limit": growth.limit,
                    "word": growth.word or "",
                }
                for series in self.series
                for growth in series.growths
            ]
        )
