"""Trouble with an object store: what TensorStore counted in an operation, and how it is said."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal, Self

from orbax_bench_core.files import ResultModel
from orbax_bench_core.measure import RETRIES, Sample, code_of
from orbax_bench_core.records.values import Bytes, Index

if TYPE_CHECKING:
    from orbax_bench_core.records.record import Record
    from orbax_bench_core.records.repeats import Repeat

Trouble = Literal["throttled", "storage errors", "retries"]
"""Trouble with an object store: answers of 429 or 408, of 500 or more, and requests made again."""

_THROTTLED: Final = (408, 429)
_ERRORS: Final = range(500, 600)
_KINDS: Final[tuple[Trouble, ...]] = ("throttled", "storage errors", "retries")
_SAID: Final[Mapping[Trouble, str]] = {
    "throttled": "throttled answers (429 or 408)",
    "storage errors": "failed answers (5xx)",
    "retries": "retries",
}


class StoreTrouble(ResultModel):
    """Trouble with an object store during one operation.

    Attributes:
        operation: Name of the measured block.
        occurrence: Which block of that name in the repeat, from 0.
        kind: `throttled` (answers of 429 or 408), `storage errors` (of 500 or more) or `retries`.
        count: How many TensorStore counted; what others ask of the store is not in it.
    """

    operation: str
    occurrence: Index
    kind: Trouble
    count: Bytes

    @classmethod
    def all_of(cls, samples: Iterable[Sample]) -> tuple[Self, ...]:
        """Sums up counters among the samples of one repeat; absent counters are 0.

        Answers of 404 and the like are normal: a save asks for what is not there yet.
        """
        found: Counter[tuple[str, int, Trouble]] = Counter()
        for sample in samples:
            kind = _kind(sample.metric)
            if kind is not None and sample.value > 0:
                found[sample.operation, sample.occurrence, kind] += int(sample.value)
        return tuple(
            cls(operation=operation, occurrence=occurrence, kind=kind, count=count)
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
    """Returns the trouble with an object store in each operation of some repeats.

    Returns:
        By operation; of all operations that any repeat has, those without trouble too.
    """
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
