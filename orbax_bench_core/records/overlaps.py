"""Overlaps: repeats during which their machine measured something else as well."""

from __future__ import annotations

import collections
import datetime
import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from orbax_bench_core.records.record import Record
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
            machine = _machine_of(record)
            if machine:
                self._busy.setdefault(machine, []).extend(_intervals(record, counted))

    def found(self) -> Mapping[str, int]:
        """Returns by id of the series how many of its repeats that count were not alone."""
        accompanied = {
            counted
            for intervals in self._busy.values()
            for counted in _find_accompanied(sorted(intervals, key=lambda each: each.begun))
        }
        return collections.Counter(series for series, _ in accompanied)

    @staticmethod
    def warning(repeats: int, what: str) -> str:
        """Returns the headline's part about repeats that were not alone; empty if all were."""
        if not repeats:
            return ""
        said = "1 repeat was" if repeats == 1 else f"{repeats} repeats were"
        return (
            f"{said} not alone: others were measured on the same machine meanwhile, so do not "
            f"trust {what}"
        )


def _machine_of(record: Record) -> str:
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


def _find_accompanied(intervals: Iterable[_Interval]) -> Iterator[tuple[str, int]]:
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
