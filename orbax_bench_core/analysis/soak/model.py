"""Model of `soak.json`: growth per save by level, and the verdict on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pydantic

from orbax_bench_core.exit_codes import Outcome
from orbax_bench_core.files import ResultModel
from orbax_bench_core.reasons import NO_REASON, Reasons

if TYPE_CHECKING:
    import pandas

SoakWord = Literal["LEAK", "PASS", "INCONCLUSIVE"]

Level = Literal["rss", "device", "anon", "open_files", "threads", "time", "files_left"]
"""Quantities that may grow: memory of the process, of the device with most, of the control group;
descriptors and threads of the process; seconds of a save; files on storage after a repeat."""


class Slope(ResultModel):
    """Growth of a level per save."""

    per_save: float  # Theil-Sen slope, in the unit of the level
    low: float  # lower end of its 95 % interval
    high: float  # upper end of it


class Growth(ResultModel):
    """One level over the saves of a process."""

    level: Level  # which
    unit: str  # its unit: `MiB`, `count` or `s`
    first: float  # median of the first ten saves that count
    last: float  # median of the last ten
    whole: Slope  # growth over all saves that count
    half: Slope  # growth over the second half of them
    # growth per save that is allowed; None if the level is shown and not judged
    limit: float | None = None
    # LEAK where both slopes lie above the limit, PASS where both lie below it, with their
    # intervals; None without a limit
    word: SoakWord | None = None
    # about how many saves a verdict takes where there is none; None if more saves would not
    # bring one, or one is there
    more: int | None = None


class SoakSeries(ResultModel):
    """The saves of one process: the longest life of those that measured one point on one host."""

    series_id: str  # id of the sweep point
    name: str  # its name
    host: int  # index of the host process
    worker: str  # id of the process; empty in records that do not tell
    operation: str  # the operation that counts as a save
    saves: int  # saves of this process
    dropped: int  # how many of them come before the first that counts
    lives: tuple[int, ...]  # saves of every process that measured the point on this host, in order
    failed: int  # repeats that failed
    growths: tuple[Growth, ...]  # each level; none where there are too few saves
    # memory of the process after each save, in MiB, for the figure; at most 400 means
    levels: tuple[float, ...]
    word: SoakWord  # the verdict
    # about how many saves a verdict takes; None if there is one, or none will come
    needed: int | None = None

    def growth(self, level: Level) -> Growth | None:
        """Returns one level; None if it was not measured."""
        return next((growth for growth in self.growths if growth.level == level), None)


class Soak(ResultModel):
    """Result of a soak.

    Attributes:
        schema_version: Version of this layout. Version 1 had sentences in the place of notes.
        run_id: The run.
        suite: Name of its suite.
        suite_file: Where the suite came from; empty if that was not noted.
        flags: Flags of the command that changed it, but for the number of saves.
        limit_mib: Growth of memory per save that is allowed, in MiB.
        word: LEAK if any process leaks, PASS if all pass.
        series: One per point and host.
        notes: What is not judged, or not whole, and why.
    """

    schema_version: Literal[1, 2] = 2
    run_id: str
    suite: str
    limit_mib: float
    word: SoakWord
    series: tuple[SoakSeries, ...]
    notes: Reasons = NO_REASON
    suite_file: str = ""
    flags: tuple[str, ...] = pydantic.Field(default=(), exclude_if=lambda found: not found)

    @property
    def outcome(self) -> Outcome:
        """What an exit code is made of."""
        return Outcome(word=self.word, incomplete=any(series.failed for series in self.series))

    def table(self) -> pandas.DataFrame:
        """Returns one row per point, host and level, with both slopes and the verdict.

        Slopes and limits are units per save: the `unit` of the level.
        """
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
