"""Repeats over all their hosts, and the series that they form."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from orbax_bench_core.config import Arm
from orbax_bench_core.measure import CPU, OF_CPU, TIME, block_name
from orbax_bench_core.records.errors import PEER_FAILED, ErrorInfo
from orbax_bench_core.records.record import Attempt, Record, Status
from orbax_bench_core.records.verified import Verified, weakest
from orbax_bench_core.sweep import Pair, SweepEntry, SweepPoint, short_name, side, sides


@dataclasses.dataclass(frozen=True, kw_only=True)
class Series:
    """Series of repeats: a sweep point, or one arm of a pair.

    Attributes:
        id: Id of the point, or `<pair id>-<arm>`: both arms of an A/A pair have the same content.
        name: Name for people.
        entry: The point, or the pair.
        arm: The arm of a pair, or of a captured record; None for a point.
    """

    id: str
    name: str
    entry: SweepEntry = dataclasses.field(compare=False, repr=False)
    arm: Arm | None = None

    @classmethod
    def all_of(cls, entry: SweepEntry) -> tuple[Series, ...]:
        """Returns the series of an entry: one of a point, two of a pair."""
        return tuple(cls._of(entry, arm, entry.id, entry.name) for arm in sides(entry))

    @classmethod
    def of_record(cls, record: Record) -> Series:
        """Returns the series that a record belongs to."""
        return cls._of(record.point, record.arm, record.point_id, record.point_name)

    @classmethod
    def _of(cls, entry: SweepEntry, arm: Arm | None, id_: str, name: str) -> Series:
        if isinstance(entry, Pair):
            id_ = f"{id_}-{arm}"
            name = f"{short_name(side(entry, arm).benchmark)}[{_label(entry, arm)}]"
        return cls(id=id_, name=name, entry=entry, arm=arm)

    @property
    def point(self) -> SweepPoint:
        """The point that is measured, with a label that names the arm."""
        point = side(self.entry, self.arm)
        if isinstance(self.entry, Pair):
            return point.with_label(_label(self.entry, self.arm))
        return point

    @property
    def directory(self) -> str:
        """Name of the folder that holds what was found, unique in a run."""
        return f"{short_name(side(self.entry, self.arm).benchmark)}_{self.id}"


def _label(pair: Pair, arm: Arm | None) -> str:
    return ",".join(filter(None, [pair.label, f"arm={arm}"]))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Repeat:
    """One repeat over all its hosts.

    Attributes:
        series: What was measured.
        index: Which repeat; warm-ups count on their own.
        block: Which block of a paired comparison; None outside one.
        life: Which slot of the block had a worker of its own for it; None without lives.
        warmup: Whether it is a discarded repeat.
        records: Record of each host that has one.
        num_hosts: How many hosts there should be.
    """

    series: Series
    index: int
    block: int | None = None
    life: int | None = None
    warmup: bool = False
    records: Mapping[int, Record]
    num_hosts: int

    @functools.cached_property
    def status(self) -> Status:
        """`passed` or `skipped` when every host says so; `failed` otherwise."""
        found = {record.status for record in self.records.values()}
        if len(self.records) == self.num_hosts and len(found) == 1:
            return found.pop()
        return "failed"

    @property
    def finished(self) -> bool:
        """Whether running the suite again leaves this repeat as it is."""
        return self.status != "failed"

    @property
    def counts(self) -> bool:
        """Whether statistics take it: it passed on every host, and is no warm-up."""
        return not self.warmup and self.status == "passed"

    @property
    def traced(self) -> bool:
        """Whether its operations were traced, which makes them slower: it is a warm-up."""
        return any(record.traced for record in self.records.values())

    @property
    def error(self) -> ErrorInfo | None:
        """Error of the host that failed first, or the reason why it was skipped."""
        errors = [record.error for record in self.records.values() if record.error is not None]
        return min(errors, key=lambda error: error.type == PEER_FAILED, default=None)

    @property
    def certain(self) -> bool:
        """Whether it failed for a reason that another attempt cannot change."""
        return any(
            record.error is not None and record.error.certain
            for record in self.records.values()
            if record.status == "failed"
        )

    @property
    def missing(self) -> tuple[int, ...]:
        """The hosts that have no record."""
        return tuple(host for host in range(self.num_hosts) if host not in self.records)

    @property
    def reason(self) -> str:
        """Why it did not pass: the first error, or which hosts have no record; empty if passed."""
        if self.error is not None:
            return self._describe(
                {host: record.error for host, record in self.records.items() if record.error}
            )
        if self.missing:
            named = ", ".join(map(str, self.missing[:_NAMED]))
            more = len(self.missing) - _NAMED
            return f"no record of host(s) {named}" + (f" and {more:,} more" if more > 0 else "")
        return ""

    @functools.cached_property
    def verified(self) -> Verified:
        """What restored values were compared with on every host; `none` where one compared none."""
        states = [record.state for record in self.records.values()]
        return weakest("none" if state is None else state.verified for state in states)

    @property
    def flagged(self) -> frozenset[str]:
        """The operations that had trouble with an object store on some host."""
        return frozenset(
            trouble.operation
            for record in self.records.values()
            for trouble in record.store_troubles
        )

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Earlier failed tries on all hosts, host by host, oldest first."""
        return tuple(attempt for record in self.records.values() for attempt in record.attempts)

    @property
    def first_failed(self) -> bool:
        """Whether the first attempt failed or hung, whatever a retry did.

        What cannot be measured, by lack of a device or of an option's effect, has not failed.
        """
        records = self.records.values()
        if all(record.status != "failed" and not record.attempts for record in records):
            return False  # as nearly all
        errors = [attempt.error for attempt in self.attempts]
        errors += [record.error or _UNKNOWN for record in records if record.status == "failed"]
        own = [error for error in errors if error.type != PEER_FAILED]
        return any(error.counts for error in own or errors)

    @property
    def first_attempt(self) -> Status | None:
        """How the first attempt ended; None while it has not, as after an interruption."""
        if self.first_failed:
            return "failed"
        return self.status if self.finished else None

    @property
    def first_reason(self) -> str:
        """Why the first attempt failed; empty when it did not."""
        errors: dict[int, ErrorInfo] = {}
        for host, record in self.records.items():
            for attempt in record.attempts:
                if attempt.error.counts:
                    errors.setdefault(host, attempt.error)
        return self._describe(errors) if errors else self.reason

    def _describe(self, errors: Mapping[int, ErrorInfo]) -> str:
        """Returns the error that began a failure, with its host unless all hosts say the same."""
        host = min(errors, key=lambda each: errors[each].type == PEER_FAILED)
        said = errors[host].said
        together = sum(error.said == said for error in errors.values()) == self.num_hosts
        return said if together or f"host {host}" in said else f"host {host}: {said}"

    @property
    def first_worker(self) -> str:
        """Id of the process that made the first attempt, on the first host that has a record."""
        for _, record in sorted(self.records.items()):
            return record.attempts[0].worker if record.attempts else record.worker
        return ""

    @property
    def impossible(self) -> bool:
        """Whether it cannot be measured: its mesh does not fit, or something is missing."""
        if self.status == "skipped":
            return True
        return self.status == "failed" and self.error is not None and not self.error.counts

    def values(self, metric: str = TIME) -> dict[tuple[str, int], dict[int, float]]:
        """Returns the values of a metric by operation and occurrence, then by host.

        Args:
            metric: Name of the metric; values are in its unit.
        """
        found: dict[tuple[str, int], dict[int, float]] = {}
        for host, record in self.records.items():
            for sample in record.samples:
                if sample.metric == metric:
                    found.setdefault((sample.operation, sample.occurrence), {})[host] = sample.value
        return found

    def seconds(self) -> Mapping[tuple[str, int], float]:
        """Returns the seconds on the slowest host, by operation and occurrence."""
        return self._seconds

    @functools.cached_property
    def _seconds(self) -> Mapping[tuple[str, int], float]:
        return {block: max(of_hosts.values()) for block, of_hosts in self.values().items()}

    def cpu_seconds(self) -> dict[tuple[str, int], float]:
        """Returns the CPU seconds on the host with most, by `save:cpu` and occurrence."""
        return {
            (f"{operation}{OF_CPU}", occurrence): max(of_hosts.values())
            for (operation, occurrence), of_hosts in self.values(CPU).items()
        }

    def labelled_seconds(self) -> dict[str, float]:
        """Returns the seconds on the slowest host by label: `save`, `save[1]`, ..."""
        return {block_name(*block): value for block, value in self.seconds().items()}


_NAMED: Final = 64
"""Hosts that are named one by one."""
_UNKNOWN: Final = ErrorInfo(type="Unknown", message="no reason was recorded")


def repeats_of(records: Iterable[Record]) -> Iterator[Repeat]:
    """Groups records by repeat: those of a run directory, of a capture, or of JSON lines."""
    for _, of_point in itertools.groupby(
        records, key=lambda record: (record.run_id, record.point_id)
    ):
        found: dict[tuple[bool, int], list[Record]] = {}
        for record in of_point:
            found.setdefault((record.warmup, record.repeat), []).append(record)
        series: dict[Arm | None, Series] = {}
        for hosts in found.values():
            arm = hosts[0].arm
            if arm not in series:
                series[arm] = Series.of_record(hosts[0])
            yield _repeat(hosts, series[arm])


def _repeat(hosts: Sequence[Record], series: Series) -> Repeat:
    first = hosts[0]
    return Repeat(
        series=series,
        index=first.repeat,
        block=first.block,
        life=first.life,
        warmup=first.warmup,
        records={record.host: record for record in hosts},
        num_hosts=first.num_hosts,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class OperationTimes:
    """Seconds of the operations of one series."""

    # of each repeat that counts, the seconds by operation and occurrence
    repeats: tuple[Mapping[tuple[str, int], float], ...]

    @classmethod
    def of(cls, repeats: Iterable[Repeat], *, cpu: bool = False) -> OperationTimes:
        """Takes the repeats that count, in their order; with their CPU times if asked."""
        return cls(
            repeats=tuple(
                {**repeat.seconds(), **(repeat.cpu_seconds() if cpu else {})}
                for repeat in repeats
                if repeat.counts
            )
        )

    def per_repeat(self) -> dict[str, tuple[float, ...]]:
        """Returns one value per repeat: the sum over the occurrences of each operation."""
        totals = [total_seconds(seconds) for seconds in self.repeats]
        return {
            operation: tuple(total[operation] for total in totals if operation in total)
            for operation in operations_in_order(totals)
        }


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


def seconds_per_repeat(
    records: Iterable[Record], *, cpu: bool = False
) -> dict[str, tuple[float, ...]]:
    """Returns `OperationTimes.per_repeat` of the records of one series, repeat by repeat."""
    return OperationTimes.of(repeats_of(records), cpu=cpu).per_repeat()
