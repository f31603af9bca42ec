"""Troubles with an object store: throttled and failed requests of each operation, from counters."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from orbax_bench_core.measure import RETRIES, Sample, code_of
from orbax_bench_core.records.record import Record, StoreTrouble, Trouble

if TYPE_CHECKING:
    from orbax_bench_core.records.repeats import Repeat

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
    """Trouble with an object store in the repeats of one operation.

    Attributes:
        flagged: Repeats in which the operation had trouble on some host.
        repeats: Repeats that have the operation.
        counts: How much of each kind there was, over all hosts and repeats.
    """

    flagged: int
    repeats: int
    counts: Mapping[Trouble, int]

    @property
    def sentence(self) -> str:
        """What storage did, for people; empty when there was no trouble."""
        if not self.flagged:
            return ""
        counted = [f"{count} {_SAID[kind]}" for kind, count in self.counts.items()]
        return f"{self.flagged} of {self.repeats} repeats had trouble with storage: " + ", ".join(
            counted
        )


class StoreFlagCounter:
    """Counter of trouble with an object store, repeat by repeat."""

    def __init__(self) -> None:
        self._total: Counter[str] = Counter()
        self._flagged: Counter[str] = Counter()
        self._counts: dict[str, Counter[Trouble]] = {}

    def add(self, repeat: Repeat) -> None:
        """Takes one repeat."""
        for operation in dict.fromkeys(operation for operation, _ in repeat.seconds()):
            self._total[operation] += 1
        for operation in repeat.flagged:
            self._flagged[operation] += 1
        for record in repeat.records.values():
            for trouble in record.store_troubles:
                of_kind = self._counts.setdefault(trouble.operation, Counter())
                of_kind[trouble.kind] += trouble.count

    def found(self) -> dict[str, StoreFlags]:
        """Returns the flags of every operation."""
        return {
            operation: StoreFlags(
                flagged=self._flagged[operation],
                repeats=repeats,
                counts=self._counts_of(operation),
            )
            for operation, repeats in self._total.items()
        }

    def _counts_of(self, operation: str) -> dict[Trouble, int]:
        counts = self._counts.get(operation, Counter[Trouble]())
        return {kind: counts[kind] for kind in _KINDS if counts[kind]}
