"""Seconds of operations, each on its slowest host.

Three numbers must not be confused. The sum over the occurrences of an operation in a repeat
(`per_repeat`) is compared by verdicts, baselines, histories, noise and studies. The time of each
occurrence (`per_occurrence`) is described by a summary. The time by label (`save`, `save[1]`;
`Repeat.labelled_seconds`) is shown by progress and TensorBoard.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from orbax_bench_core.records.record import Record
from orbax_bench_core.records.repeats import Repeat, repeats_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class OperationTimes:
    """Seconds of the operations of one series.

    Attributes:
        repeats: Of each repeat that counts, the seconds by operation and occurrence.
    """

    repeats: tuple[Mapping[tuple[str, int], float], ...]

    @classmethod
    def of(cls, repeats: Iterable[Repeat]) -> OperationTimes:
        """Takes the repeats that count, in their order."""
        return cls(repeats=tuple(repeat.seconds() for repeat in repeats if repeat.counts))

    def per_repeat(self) -> dict[str, tuple[float, ...]]:
        """Returns one value per repeat: the sum over the occurrences of each operation."""
        totals = [total_seconds(seconds) for seconds in self.repeats]
        return {
            operation: tuple(total[operation] for total in totals if operation in total)
            for operation in operations_in_order(totals)
        }

    def per_occurrence(self) -> dict[str, tuple[float, ...]]:
        """Returns one value per occurrence of each operation."""
        found: dict[str, list[float]] = {}
        for seconds in self.repeats:
            for (operation, _), value in seconds.items():
                found.setdefault(operation, []).append(value)
        return {operation: tuple(values) for operation, values in found.items()}


def total_seconds(seconds: Mapping[tuple[str, int], float]) -> dict[str, float]:
    """Returns the sum over the occurrences of each operation of one repeat."""
    total: dict[str, float] = {}
    for (operation, _), value in seconds.items():
        total[operation] = total.get(operation, 0.0) + value
    return total


def operations_in_order(repeats: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Returns all operations of some repeats in the order in which a whole repeat does them.

    What one repeat lacks has the place that it has in another, for the order decides which
    operations of a class are primary: one that an arm lacks must not lose its place for that.
    """
    order: list[str] = []
    for repeat in dict.fromkeys(map(tuple, repeats)):
        place = 0
        for operation in repeat:
            if operation not in order:
                order.insert(place, operation)
            place = order.index(operation) + 1
    return tuple(order)


def seconds_per_repeat(records: Iterable[Record]) -> dict[str, tuple[float, ...]]:
    """Returns `OperationTimes.per_repeat` of the records of one series, repeat by repeat."""
    return OperationTimes.of(repeats_of(records)).per_repeat()
