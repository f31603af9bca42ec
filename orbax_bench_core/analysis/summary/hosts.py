"""Hosts of a run: which machines they were, and how often each was started again."""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from orbax_bench_core.measure import TIME, event_metric
from orbax_bench_core.recorder import METADATA_WAIT, OWN_TIMES, SIGNAL_WAIT
from orbax_bench_core.records import Record

_LEVEL: Final = 0.01
"""Chance that an operation with equal hosts has one called slow."""
_SLOWER: Final = 1.25
"""How many times the others a slow host takes."""
_MATTERS: Final = 0.05
"""Share of an operation below which an excess is not told."""
_STAGES: Final[dict[str, tuple[str, ...]]] = {
    **OWN_TIMES,
    "/jax/orbax/write/blocking_d2h_duration_secs": (),
    "/jax/orbax/write/blocking_tree_map_duration_secs": (),
    "/jax/orbax/read/worker/total_duration_secs": (),
}
"""Events that time work of each host, with the waits for the primary host in them.

All other stages are those of one host, or end with the slowest host on all of them.
"""
_Own = dict[int, tuple[float, float]]
"""Least and most seconds that each host has taken itself, by host."""
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """The host that is slower than the others in one operation of one point, by its own time."""

    host: int  # its index
    slowest: int  # number of repeats in which it was the slowest
    repeats: int  # number of repeats
    # seconds by which it exceeded the median of the other hosts, median over repeats
    excess_s: float
    # the timed stage in which it exceeded them by most; None when Orbax timed no stage of the
    # operation on every host
    stage: str | None
    stage_excess_s: float  # by how many seconds, median over repeats


def stragglers_of(repeats: Iterable[Sequence[Record]]) -> dict[str, Straggler]:
    """Returns the straggler of each operation that has one, given the records of each repeat.

    A host is one if it takes a quarter longer than the median of the others, by the clock or in a
    stage. While it waits for the primary host, it may or may not work: its least time is compared
    with the most of the others, as logarithms over the repeats, by a one-sided t-test with
    Bonferroni's correction over hosts and stages. Hosts that wait for a slow one at the end of an
    operation take as long by the clock, so that only the stages tell it.
    """
    rows: dict[str, dict[str, list[_Own]]] = {}
    for hosts in repeats:
        for operation, by_host in _by_operation(hosts).items() if len(hosts) > 1 else ():
            of_operation = rows.setdefault(operation, {})
            for metric, own in _own_times(by_host):
                of_operation.setdefault(metric, []).append(own)
    found = {operation: _straggler(ways) for operation, ways in rows.items()}
    return {operation: host for operation, host in found.items() if host is not None}


def _straggler(ways: Mapping[str, Sequence[_Own]]) -> Straggler | None:
    took = statistics.median(
        statistics.fmean(most for _, most in own.values()) for own in ways[TIME]
    )
    slow = {
        metric: (host, excess)
        for metric, rows in ways.items()
        if (host := _slow_host(rows, len(ways))) is not None
        and (excess := _excess(rows, host)) >= _MATTERS * took
    }
    if not slow:
        return None
    by = TIME if TIME in slow else max(slow, key=lambda metric: slow[metric][1])
    host, excess = slow[by]
    stages = {metric: _excess(rows, host) for metric, rows in ways.items() if metric != TIME}
    stage = max(stages, key=stages.__getitem__, default=None)
    return Straggler(
        host=host,
        slowest=sum(max(own, key=own.__getitem__) == host for own in ways[by]),
        repeats=len(ways[by]),
        excess_s=excess,
        stage=stage,
        stage_excess_s=0.0 if stage is None else stages[stage],
    )


def _slow_host(rows: Sequence[_Own], ways: int) -> int | None:
    """Returns the host that surely takes longer than the others."""
    hosts = rows[0].keys()
    if len(rows) < 2 or any(own.keys() != hosts for own in rows):
        return None
    ratios = {
        host: [math.log(max(own[host][0], 1e-9) / max(_others(own, host), 1e-9)) for own in rows]
        for host in hosts
    }
    host = max(ratios, key=lambda each: statistics.fmean(ratios[each]))
    mean = statistics.fmean(ratios[host])
    if mean < math.log(_SLOWER):
        return None
    from scipy.special import stdtr

    error = max(statistics.stdev(ratios[host]), 1e-12) / math.sqrt(len(rows))
    chance = float(stdtr(len(rows) - 1, -mean / error))
    return host if chance * len(hosts) * ways <= _LEVEL else None


def _others(own: _Own, host: int) -> float:
    return statistics.median(most for other, (_, most) in own.items() if other != host)


def _excess(rows: Sequence[_Own], host: int) -> float:
    return statistics.median(own[host][0] - _others(own, host) for own in rows)


def _own_times(by_host: Mapping[int, Mapping[str, float]]) -> Iterator[tuple[str, _Own]]:
    """Yields the clock, and each stage of which every host has its time and all waits."""

    def own(metric: str, waits: Iterable[str]) -> _Own:
        most = {host: of[metric] for host, of in by_host.items()}
        held = {host: sum(of.get(wait, 0.0) for wait in waits) for host, of in by_host.items()}
        return {host: (max(0.0, most[host] - held[host]), most[host]) for host in by_host}

    yield TIME, own(TIME, tuple(map(_metric, (METADATA_WAIT, SIGNAL_WAIT))))
    for event, inside in _STAGES.items():
        stage, *waits = map(_metric, (event, *inside))
        if all(metric in of for metric in (stage, *waits) for of in by_host.values()):
            yield stage, own(stage, waits)


def _metric(event: str) -> str:
    metric = event_metric("duration", event)
    assert metric is not None
    return metric.name


def _by_operation(hosts: Sequence[Record]) -> dict[str, dict[int, dict[str, float]]]:
    """Returns seconds by operation, host and metric, for operations that every host has."""
    found: dict[str, dict[int, dict[str, float]]] = {}
    for record in hosts:
        for sample in record.samples:
            if sample.unit == "s":
                metrics = found.setdefault(sample.operation, {}).setdefault(record.host, {})
                metrics[sample.metric] = metrics.get(sample.metric, 0.0) + sample.value
    return {
        operation: by_host
        for operation, by_host in found.items()
        if len([of for of in by_host.values() if TIME in of]) == len(hosts)
    }
