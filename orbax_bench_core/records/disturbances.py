"""Disturbances of repeats: others on the machine meanwhile, and troubles with an object store."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import functools
import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from orbax_bench_core.measure import RETRIES, Sample, code_of
from orbax_bench_core.records.record import Record, StoreTrouble, Trouble
from orbax_bench_core.records.repeats import Repeat

if TYPE_CHECKING:
    from orbax_bench_core.records.repeats import Repeat


_TOLERANCE: Final = datetime.timedelta(seconds=0.05)
"""Overlap that says nothing: beginnings are read from the clock of the day, which is set at times,
and lengths from one that is not."""


class _Interval(NamedTuple):
    """Time in which the process `worker` was busy with a repeat of the point or pair `entry`.

    `counted` is its series and index; None for one that only disturbs.
    """

    begun: datetime.datetime
    ended: datetime.datetime
    entry: str
    worker: str
    counted: tuple[str, int] | None


class OverlapFinder:
    """Collects when machines were busy, and finds the repeats that were not alone on theirs.

    A run whose steps wait for each other, as the measuring lock has them, has none. What another
    run measured is not in the records of this one, and neither are machines whose pods have names
    of their own and whose launcher does not tell the node.
    """

    def __init__(self) -> None:
        """Knows no repeat yet."""
        self._busy: dict[str, list[_Interval]] = {}

    def add(self, repeat: Repeat) -> None:
        """Takes one repeat, of any kind: warm-ups and failures disturb as well."""
        counted = (repeat.series.id, repeat.index) if repeat.counts else None
        for record in repeat.records.values():
            machine = _machine(record)
            if machine:
                self._busy.setdefault(machine, []).extend(_intervals(record, counted))

    def found(self) -> Mapping[str, int]:
        """Returns by id of the series how many of its repeats that count were not alone."""
        accompanied = {
            counted
            for intervals in self._busy.values()
            for counted in _accompanied(sorted(intervals, key=lambda each: each.begun))
        }
        return collections.Counter(series for series, _ in accompanied)

    @staticmethod
    def warning(repeats: int, what: str) -> str:
        """Returns what a headline says where repeats were not alone; empty where all were."""
        if not repeats:
            return ""
        said = "1 repeat was" if repeats == 1 else f"{repeats} repeats were"
        return (
            f"{said} not alone: others were measured on the same machine meanwhile, so do not "
            f"trust {what}"
        )


def _machine(record: Record) -> str:
    host = record.provenance.get("host")
    if not isinstance(host, Mapping):
        return ""
    return str(host.get("node") or host.get("name") or "")


def _intervals(record: Record, counted: tuple[str, int] | None) -> Iterator[_Interval]:
    """Yields when a record and the failed tries before it kept their machine busy."""
    tries = [(each.started_at, each.duration_s, each.worker, None) for each in record.attempts]
    for begun, seconds, worker, which in (
        *tries,
        (record.started_at, record.duration_s, record.worker, counted),
    ):
        if worker and seconds is not None:
            ended = begun + datetime.timedelta(seconds=seconds)
            yield _Interval(begun, ended, record.point_id, worker, which)


def _accompanied(intervals: Iterable[_Interval]) -> Iterator[tuple[str, int]]:
    """Yields the repeats that count and overlap with one of another entry."""
    active: list[tuple[datetime.datetime, int, _Interval]] = []
    for number, interval in enumerate(intervals):
        while active and active[0][0] <= interval.begun + _TOLERANCE:
            heapq.heappop(active)
        if interval.ended <= interval.begun + _TOLERANCE:
            continue
        for _, _, other in active:
            if other.entry != interval.entry and other.worker != interval.worker:
                yield from (each.counted for each in (interval, other) if each.counted)
        heapq.heappush(active, (interval.ended, number, interval))


_THROTTLED: Final = (408, 429)
_ERRORS: Final = range(500, 600)
_KINDS: Final[tuple[Trouble, ...]] = ("throttled", "storage errors", "retries")
_SAID: Final[Mapping[Trouble, str]] = {
    "throttled": "throttled answers (429 or 408)",
    "storage errors": "failed answers (5xx)",
    "retries": "retries",
}


def troubles_of(samples: Iterable[Sample]) -> tuple[StoreTrouble, ...]:
    """Returns what counters among the samples of one repeat say; absent counters are 0.

    Answers of 404 and the like are normal: a save asks for what is not there yet.
    """
    found: Counter[tuple[str, int, Trouble]] = Counter()
    for sample in samples:
        kind = _kind(sample.metric)
        if kind is not None and sample.value > 0:
            found[sample.operation, sample.occurrence, kind] += int(sample.value)
    return tuple(
        StoreTrouble(operation=operation, occurrence=occurrence, kind=kind, count=count)
        for (operation, occurrence, kind), count in found.items()
    )


@functools.lru_cache(maxsize=4096)  # every sample of every repeat asks, with some hundred names
def _kind(metric: str) -> Trouble | None:
    if metric == RETRIES.name:
        return "retries"
    code = code_of(metric)
    if code in _THROTTLED:
        return "throttled"
    return "storage errors" if code in _ERRORS else None


def flags_of(record: Record) -> dict[tuple[str, int], tuple[Trouble, ...]]:
    """Returns the kinds of trouble of each operation and occurrence that had any."""
    found: dict[tuple[str, int], set[Trouble]] = {}
    for trouble in record.store_troubles:
        found.setdefault((trouble.operation, trouble.occurrence), set()).add(trouble.kind)
    return {block: tuple(filter(kinds.__contains__, _KINDS)) for block, kinds in found.items()}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoreFlags:
    """Trouble with an object store in the repeats of one operation."""

    flagged: int  # repeats in which the operation had trouble on some host
    repeats: int  # repeats that have the operation
    counts: Mapping[Trouble, int]  # how much of each kind there was, over all hosts and repeats

    @property
    def sentence(self) -> str:
        """What storage did, for people; empty when there was no trouble."""
        if not self.flagged:
            return ""
        counted = [f"{count} {_SAID[kind]}" for kind, count in self.counts.items()]
        return f"{self.flagged} of {self.repeats} repeats had trouble with storage: " + ", ".join(
            counted
        )


def store_flags(repeats: Iterable[Repeat]) -> dict[str, StoreFlags]:
    """Returns the trouble with an object store in each operation of some repeats."""
    total: Counter[str] = Counter()
    flagged: Counter[str] = Counter()
    counts: Counter[tuple[str, Trouble]] = Counter()
    for repeat in repeats:
        total.update(list(dict.fromkeys(operation for operation, _ in repeat.seconds())))
        flagged.update(repeat.flagged)
        for record in repeat.records.values():
            for trouble in record.store_troubles:
                counts[trouble.operation, trouble.kind] += trouble.count
    return {
        operation: StoreFlags(
            flagged=flagged[operation],
            repeats=number,
            counts={kind: n for kind in _KINDS if (n := counts[operation, kind])},
        )
        for operation, number in total.items()
    }
