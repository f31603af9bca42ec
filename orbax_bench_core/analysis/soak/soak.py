"""Soak of a run: the longest life of each process, its growth per save, and the verdict on it."""

import itertools
import statistics
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from orbax_bench_core.analysis.soak.growth import (
    DROPPED,
    FEWEST,
    saves_to_decide,
    slope_of,
    word_of,
)
from orbax_bench_core.analysis.soak.model import Growth, Level, Soak, SoakSeries
from orbax_bench_core.analysis.soak.reasons import SENTENCES
from orbax_bench_core.errors import UserError
from orbax_bench_core.gate import together
from orbax_bench_core.measure import ANON, HBM_IN_USE, OPEN_FILES, RSS, THREADS, TIME
from orbax_bench_core.reasons import Reason, because, in_words
from orbax_bench_core.records import Record, Repeat, Run, Series

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
    """Judges the growth per save of every point of a run, on every host.

    Args:
        run: The run.
        limit_mib: Largest growth per save that is no leak, in MiB.

    Raises:
        UserError: No point has enough saves of one process; the message says why.
    """
    notes: list[Reason] = []
    found = [
        judged
        for series in run.series()
        for judged in _series(series, list(run.repeats(series)), limit_mib, notes)
    ]
    if not found:
        why = in_words(SENTENCES, notes[0]) if notes else "it has no point"
        raise UserError(
            f"{run.directory.root} holds no soak ({why}): `orbax-bench soak SUITE -o DIR --saves "
            f"{FEWEST}` measures the state of the process after each save"
        )
    words = [series.word for series in found]
    if any(series.failed for series in found):
        words.append("INCONCLUSIVE")  # what a failure ended has not passed
    # The number of saves is that of `--saves`, which the command gives anew.
    own = [each for each in run.info.flags[1::2] if not each.startswith("num_repeats=")]
    return Soak(
        run_id=run.info.run_id,
        suite=run.info.suite_name,
        suite_file=run.info.suite_file,
        flags=tuple(word for each in own for word in ("--override", each)),
        limit_mib=limit_mib,
        word=together(words),
        series=tuple(found),
        notes=tuple(notes),
    )


def lives_of(repeats: Iterable[Repeat], host: int = 0) -> list[Life]:
    """Returns the processes that measured some repeats of one point on one host, in order.

    Args:
        repeats: Repeats of one point, in the order of measurement; warm-ups are left out.
        host: Index of the host.
    """
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
    series: Series, repeats: list[Repeat], limit_mib: float, notes: list[Reason]
) -> list[SoakSeries]:
    found = []
    for host in range(series.point.processes):
        lives = lives_of(repeats, host)
        life = longest(lives)
        if life is None or not all(RSS.name in levels for levels in life.values):
            reason = next((repeat.reason for repeat in repeats if repeat.reason), "")
            if reason:
                notes += because("not_measured", point=series.name, said=reason)
            else:
                notes += because("no_levels", point=series.name, host=host, metric=RSS.name)
            continue
        if len(lives) > 1:
            saves = len(life.values)
            notes += because(
                "several_lives", point=series.name, lives=len(lives), host=host, saves=saves
            )
        failed = sum(repeat.status == "failed" for repeat in repeats)
        if failed:
            reason = next(repeat.reason for repeat in repeats if repeat.status == "failed")
            notes += because(
                "repeats_failed",
                point=series.name,
                failed=failed,
                repeats=len(repeats),
                said=reason,
            )
        found.append(_judged(series, host, life, lives, failed, limit_mib))
    return found


def _judged(
    series: Series, host: int, life: Life, lives: list[Life], failed: int, limit_mib: float
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
