"""Growth per save: Theil-Sen slope with a moving-block bootstrap, and the verdict on a limit.

The slope is the median of the slopes between all pairs of saves (Sen, 1968), which neither a step
nor a spike moves far. Memory is correlated from save to save, so residuals are drawn in blocks of
neighbours (Künsch, 1989). A heap that still fills up looks like a leak from its beginning and stops
growing later: so whatever is decided has to hold for the second half alone as well.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import Outcome
from orbax_bench_core.files import ResultModel
from orbax_bench_core.gate import together
from orbax_bench_core.measure import ANON, HBM_IN_USE, OPEN_FILES, RSS, THREADS, TIME
from orbax_bench_core.records import Record, Repeat, Run, Series

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]
    import pandas

DROPPED: Final = 20
"""First saves of a process, in which it compiles, fills caches and starts threads."""
FEWEST: Final = 200
"""Fewest saves of one process that a verdict rests on, the dropped ones among them.

A heap of 30 MiB that fills with a time constant of 60 saves grows by less than 0.1 MiB a save in
the second half of these. With 120 saves it was called a leak in 12 of 20 simulated soaks.
"""

_BLOCK: Final = 15
"""Neighbours that are drawn together: correlation that reaches further is not covered."""
_DRAWS: Final = 600
_AT_ONCE: Final = 20
_MOST: Final = 400
"""Points of a series; a longer one is made of the means of as many neighbours as it takes."""
_COVERAGE: Final = 0.95
_FARTHEST: Final = 100_000
_NEAR: Final = 0.05
_EXACT: Final = 1e-9


def slope_of(values: Sequence[float]) -> Slope:
    """Returns the growth per save of a level, with its 95 % interval."""
    import numpy as np

    stride = -(-len(values) // _MOST)
    kept = np.asarray(values[len(values) % stride :], np.float64)
    levels = kept.reshape(-1, stride).mean(1)
    slope = float(np.median(_pair_slopes(levels[None])))
    residuals = levels - slope * np.arange(len(levels))
    if np.allclose(
        residuals, residuals[0], rtol=0, atol=_EXACT
    ):  # a level that stays, or grows by as much each time
        return Slope(per_save=slope / stride, low=slope / stride, high=slope / stride)
    starts = np.random.default_rng(len(levels)).integers(
        0, max(1, len(levels) - _BLOCK + 1), (_DRAWS, -(-len(levels) // _BLOCK))
    )
    places = (starts[..., None] + np.arange(min(_BLOCK, len(levels)))).reshape(_DRAWS, -1)
    drawn = residuals[places[:, : len(levels)]]
    # A line that is added to every draw adds its slope to that of the draw.
    slopes = np.concatenate(
        [
            np.median(_pair_slopes(drawn[first : first + _AT_ONCE]), axis=1)
            for first in range(0, _DRAWS, _AT_ONCE)
        ]
    )
    low, high = np.quantile(slope + slopes, [(1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2])
    return Slope(per_save=slope / stride, low=float(low) / stride, high=float(high) / stride)


def word_of(whole: Slope, half: Slope, limit: float) -> SoakWord:
    """Returns LEAK or PASS where both slopes agree on which side of the limit they are."""
    if min(whole.low, half.low) > limit:
        return "LEAK"
    if max(whole.high, half.high) < limit:
        return "PASS"
    return "INCONCLUSIVE"


def saves_to_decide(whole: Slope, half: Slope, limit: float, saves: int) -> int | None:
    """Returns about how many saves a verdict takes; None if more would not bring one.

    The interval of a slope shrinks with the power 3/2 of the number of saves. Where both slopes are
    on different sides, the process is still warming up, and twice as many saves tell.
    """
    if (whole.per_save > limit) != (half.per_save > limit):
        return 2 * saves
    factor = 1.0
    for slope in (whole, half):
        away = abs(slope.per_save - limit)
        if away < _NEAR * limit:
            return None
        reach = (
            slope.high - slope.per_save if slope.per_save < limit else slope.per_save - slope.low
        )
        factor = max(factor, (reach / away) ** (2 / 3))
    needed = DROPPED + math.ceil(1.2 * factor * (saves - DROPPED))
    return needed if needed < _FARTHEST else None


def _pair_slopes(rows: Array) -> Array:
    first, second = _pairs(rows.shape[1])
    slopes: Array = (rows[:, second] - rows[:, first]) / (second - first)
    return slopes


@functools.lru_cache(maxsize=4)
def _pairs(length: int) -> tuple[Any, Any]:
    import numpy as np

    return np.triu_indices(length, 1)


LIMIT_MIB: Final = 0.1
"""Growth of memory per save that is allowed unless a limit is given."""
LIMIT_COUNT: Final = 0.05
"""Growth of descriptors and of threads that is allowed: one in 20 saves."""

SAVES: Final = ("save", "save_blocking")
"""Operations that count as a save, the first that a benchmark has."""

_LEVELS: Final[dict[Level, tuple[str, str, float]]] = {
    "rss": (RSS.name, "MiB", 1.0),
    "device": (HBM_IN_USE.name, "MiB", 1024.0),
    "anon": (ANON.name, "MiB", 1.0),
    "open_files": (OPEN_FILES.name, "count", 1.0),
    "threads": (THREADS.name, "count", 1.0),
    "time": (TIME, "s", 1.0),
}
"""Metric, unit and factor of each level that a save has."""
_ENDS: Final = 10
_DRAWN: Final = 400


class Life(NamedTuple):
    """The saves of one process, in order."""

    worker: str  # id of the process
    operation: str  # the operation that counts as a save
    values: list[dict[str, float]]  # levels of each save by metric
    records: list[Record]  # records that they come from


def soak_of(run: Run, limit_mib: float = LIMIT_MIB) -> Soak:
    """Judges the growth per save of every point of a run, on every host."""
    notes: list[str] = []
    found = [
        judged
        for series in run.series()
        for judged in _series(series, list(run.repeats(series)), limit_mib, notes)
    ]
    if not found:
        why = notes[0] if notes else "it has no point"
        raise UserError(
            f"{run.directory.root} holds no soak ({why}): `orbax-bench soak SUITE -o DIR --saves "
            f"{FEWEST}` measures the state of the process after each save"
        )
    words = [series.word for series in found]
    if any(series.failed for series in found):
        words.append("INCONCLUSIVE")  # what a failure ended has not passed
    return Soak(
        run_id=run.info.run_id,
        suite=run.info.suite_name,
        suite_file=run.info.suite_file,
        limit_mib=limit_mib,
        word=together(words),
        series=tuple(found),
        notes=tuple(notes),
    )


def lives_of(repeats: Iterable[Repeat], host: int = 0) -> list[Life]:
    """Returns the processes that measured some repeats of one point on one host, in order."""
    records = [
        repeat.records[host] for repeat in repeats if not repeat.warmup and host in repeat.records
    ]
    lives = []
    for worker, made in itertools.groupby(records, key=lambda record: record.worker):
        life = list(made)
        measured = {sample.operation for record in life for sample in record.samples}
        operation = next((operation for operation in SAVES if operation in measured), None)
        if operation is not None:
            values = [level for record in life for level in _saves(record, operation)]
            lives.append(Life(worker, operation, values, life))
    return lives


def longest(lives: Sequence[Life]) -> Life | None:
    """Returns the life with most saves; None without any."""
    return max(lives, key=lambda life: len(life.values), default=None)


def _series(
    series: Series, repeats: list[Repeat], limit_mib: float, notes: list[str]
) -> list[SoakSeries]:
    found = []
    for host in range(series.point.processes):
        lives = lives_of(repeats, host)
        life = longest(lives)
        if life is None or not all(RSS.name in levels for levels in life.values):
            reason = next((repeat.reason for repeat in repeats if repeat.reason), "")
            nothing = f"no save on host {host} has the state of its process, {RSS.name}"
            notes.append(f"{series.name}: {reason or nothing}")
            continue
        if len(lives) > 1:
            notes.append(
                f"{series.name}: {len(lives)} processes made saves on host {host}, since the soak "
                f"was stopped or a repeat failed; the longest life, of {len(life.values)} saves, "
                "is judged, because every process starts with fresh memory"
            )
        failed = sum(repeat.status == "failed" for repeat in repeats)
        if failed:
            reason = next(repeat.reason for repeat in repeats if repeat.status == "failed")
            notes.append(f"{series.name}: {failed} of {len(repeats)} repeats failed: {reason}")
        found.append(_judged(series, host, life, lives, failed, limit_mib))
    return found


def _judged(
    series: Series,
    host: int,
    life: Life,
    lives: list[Life],
    failed: int,
    limit_mib: float,
) -> SoakSeries:
    saves = len(life.values)
    enough = saves >= FEWEST
    growths = _growths(life, limit_mib) if enough else ()
    memory = [growth for growth in growths if growth.level in ("rss", "device")]
    # Whatever grows is a leak, and memory that does not is a pass.
    deciding = [growth for growth in growths if growth in memory or growth.word == "LEAK"]
    # None where there is a verdict, or none will come.
    more = [growth.more for growth in memory if growth.more is not None]
    return SoakSeries(
        series_id=series.id,
        name=series.name,
        host=host,
        worker=life.worker,
        operation=life.operation,
        saves=saves,
        dropped=DROPPED,
        lives=tuple(len(each.values) for each in lives),
        failed=failed,
        growths=growths,
        levels=_drawn([levels[RSS.name] for levels in life.values]),
        word=together([growth.word for growth in deciding if growth.word is not None]),
        needed=max(more, default=None) if enough else FEWEST,
    )


def _growths(life: Life, limit_mib: float) -> tuple[Growth, ...]:
    limits: dict[Level, float] = {
        "rss": limit_mib,
        "device": limit_mib,
        "open_files": LIMIT_COUNT,
        "threads": LIMIT_COUNT,
    }
    found = []
    for level, (metric, unit, factor) in _LEVELS.items():
        values = [factor * levels[metric] for levels in life.values if metric in levels]
        if len(values) == len(life.values):
            found.append(_growth(level, unit, values[DROPPED:], limits.get(level)))
    left = [
        float(record.inventory.file_count)
        for record in life.records
        if record.inventory is not None
    ]
    if len(left) == len(life.values):  # one save a repeat: slopes are per save
        found.append(_growth("files_left", "count", left[DROPPED:], None))
    return tuple(found)


def _growth(level: Level, unit: str, values: list[float], limit: float | None) -> Growth:
    whole, half = slope_of(values), slope_of(values[len(values) // 2 :])
    word = None if limit is None else word_of(whole, half, limit)
    more = None
    if word == "INCONCLUSIVE" and limit is not None:
        more = saves_to_decide(whole, half, limit, DROPPED + len(values))
    return Growth(
        level=level,
        unit=unit,
        first=statistics.median(values[:_ENDS]),
        last=statistics.median(values[-_ENDS:]),
        whole=whole,
        half=half,
        limit=limit,
        word=word,
        more=more,
    )


def _saves(record: Record, operation: str) -> list[dict[str, float]]:
    """Returns the levels of each save of a repeat by metric, in order."""
    found: dict[int, dict[str, float]] = {}
    for sample in record.samples:
        if sample.operation == operation:
            found.setdefault(sample.occurrence, {})[sample.metric] = sample.value
    return [found[occurrence] for occurrence in sorted(found)]


def _drawn(levels: list[float]) -> tuple[float, ...]:
    stride = max(1, -(-len(levels) // _DRAWN))
    return tuple(
        statistics.fmean(levels[first : first + stride]) for first in range(0, len(levels), stride)
    )


SoakWord = Literal["LEAK", "PASS", "INCONCLUSIVE"]

Level = Literal["rss", "device", "anon", "open_files", "threads", "time", "files_left"]
"""Quantities that may grow: memory of the process, of the device with most, of the control group;
descriptors and threads of the process; seconds of a save; files on storage after a repeat."""


class Slope(ResultModel):
    """Growth of a level per save."""

    per_save: float  # theil-Sen slope, in the unit of the level
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
        schema_version: Version of this layout.
        run_id: The run.
        suite: Name of its suite.
        suite_file: Where the suite came from; empty if that was not noted.
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
    suite_file: str = ""

    @property
    def outcome(self) -> Outcome:
        """What an exit code is made of."""
        return Outcome(word=self.word, incomplete=any(series.failed for series in self.series))

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
