"""Hosts of a run: which machines they were, and how often each was started again."""

import collections
import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence

from orbax_bench_core.measure import TIME, Sample, lookup
from orbax_bench_core.records import Record

_RESTARTS = {"restarts": "by its launcher", "rejoined": "during the run"}


class HostFinder:
    """Collects the machine of each host from the records of a run."""

    def __init__(self) -> None:
        """Knows no host yet."""
        self._machines: dict[int, dict[str, None]] = {}
        self._restarts: dict[int, dict[str, int]] = {}
        self._last: dict[int, object] = {}

    def add(self, record: Record) -> None:
        """Takes the record of one host for one repeat."""
        found = record.provenance.get("host")
        if not isinstance(found, Mapping) or self._last.get(record.host) is found:
            return  # the repeats of a worker share theirs
        self._last[record.host] = found
        self._machines.setdefault(record.host, {})[_machine(found)] = None
        counts = self._restarts.setdefault(record.host, {})
        for key in _RESTARTS:
            number = str(found.get(key, ""))
            if number.isdecimal():
                counts[key] = max(counts.get(key, 0), int(number))

    def found(self) -> tuple[str, ...]:
        """Returns a line per host; none for a run on one machine that was started once."""
        lines = tuple(self._line(host) for host in sorted(self._machines))
        machines = {name for names in self._machines.values() for name in names}
        restarts = sum(sum(counts.values()) for counts in self._restarts.values())
        return lines if len(machines) > 1 or restarts else ()

    def _line(self, host: int) -> str:
        again = [
            f"started again {count} time{'s' if count > 1 else ''} {_RESTARTS[key]}"
            for key, count in self._restarts[host].items()
            if count
        ]
        return ", ".join([f"host {host}: {' and '.join(self._machines[host])}", *again])


def _machine(found: Mapping[str, object]) -> str:
    """Returns the name of a machine, and where its cluster has it."""
    name = str(found.get("name", "unknown"))
    node, pool = found.get("node"), found.get("node_pool")
    places = [f"node {node}" if node and node != name else "", f"pool {pool}" if pool else ""]
    where = ", ".join(filter(None, places))
    return f"{name} ({where})" if where else name


_STAGES = ("2_save_breakdown/", "3_load_breakdown/")
_ByHost = dict[int, dict[str, float]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """The host that was slowest most often in one operation of one point."""

    host: int  # its index
    slowest: int  # number of repeats in which it was the slowest
    repeats: int  # number of repeats
    # seconds by which the slowest host exceeded the median host, median over repeats
    excess_s: float
    # the timed stage in which it exceeded the median host by most; None when Orbax timed no stage
    # of the operation
    stage: str | None
    stage_excess_s: float  # by how many seconds, mean over the repeats in which it was the slowest


def stragglers_of(repeats: Iterable[Sequence[Record]]) -> dict[str, Straggler]:
    """Returns the straggler of each operation, given the records of each repeat, one per host.

    Repeats of a single host say nothing.

    Returns:
        By operation, the host that was slowest most often, and the median over the repeats of how
        many seconds the slowest host was behind the median of all.
    """
    excess: dict[str, list[float]] = collections.defaultdict(list)
    slowest: dict[str, list[int]] = collections.defaultdict(list)
    stages: dict[tuple[str, int], dict[str, float]] = collections.defaultdict(dict)
    for hosts in repeats:
        for operation, by_host in _by_operation(hosts).items() if len(hosts) > 1 else ():
            times = {host: metrics[TIME] for host, metrics in by_host.items()}
            last = max(times, key=times.__getitem__)
            slowest[operation].append(last)
            excess[operation].append(times[last] - statistics.median(times.values()))
            of_last = stages[operation, last]
            for stage, seconds in _stage_excess(by_host, last).items():
                of_last[stage] = of_last.get(stage, 0.0) + seconds
    found = {}
    for operation, of_repeats in slowest.items():
        [(host, count)] = collections.Counter(of_repeats).most_common(1)
        of_host = stages[operation, host]
        slow = max(of_host, key=of_host.__getitem__, default=None)
        found[operation] = Straggler(
            host=host,
            slowest=count,
            repeats=len(of_repeats),
            excess_s=statistics.median(excess[operation]),
            stage=slow,
            stage_excess_s=of_host[slow] / count if slow is not None else 0.0,
        )
    return found


def _by_operation(hosts: Sequence[Record]) -> dict[str, _ByHost]:
    """Returns seconds by operation, host and metric, for operations that every host has."""
    found: dict[str, _ByHost] = collections.defaultdict(lambda: collections.defaultdict(dict))
    for record in hosts:
        for sample in record.samples:
            if sample.metric == TIME or _is_stage(sample):
                metrics = found[sample.operation][record.host]
                metrics[sample.metric] = metrics.get(sample.metric, 0.0) + sample.value
    return {operation: found_ for operation, found_ in found.items() if len(found_) == len(hosts)}


def _is_stage(sample: Sample) -> bool:
    # Some durations are not of work, such as the time since the save before.
    return (
        sample.unit == "s"
        and sample.metric.startswith(_STAGES)
        and lookup(sample.metric).better == "lower"
    )


def _stage_excess(by_host: _ByHost, slowest: int) -> dict[str, float]:
    excess = {}
    for stage, value in by_host[slowest].items():
        if stage != TIME:
            others = [metrics.get(stage, 0.0) for metrics in by_host.values()]
            excess[stage] = value - statistics.median(others)
    return excess
