"""Seconds of operations that were measured one after another, outside any pair."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable

from orbax_bench_core.measure import TIME
from orbax_bench_core.records.record import Record


def by_point(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Returns records by the id of their point, in the order in which points first occur."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.point_id, []).append(record)
    return found


def repeat_times(records: Iterable[Record]) -> dict[str, tuple[float, ...]]:
    """Returns the seconds of each operation in each repeat that passed on every host.

    An operation takes as long as on its slowest host; one that occurs several times in a repeat
    takes the sum.

    Args:
        records: Records of one point in one run, repeat by repeat.
    """
    found: dict[str, list[float]] = collections.defaultdict(list)
    measured = (record for record in records if not record.warmup)
    for _, group in itertools.groupby(measured, key=lambda record: (record.run_id, record.repeat)):
        hosts = list(group)
        if len(hosts) == hosts[0].num_hosts and all(host.status == "passed" for host in hosts):
            for operation, seconds in repeat_seconds(hosts).items():
                found[operation].append(seconds)
    return {operation: tuple(seconds) for operation, seconds in found.items()}


def repeat_seconds(hosts: Iterable[Record]) -> dict[str, float]:
    """Returns the seconds of each operation of a repeat, each time on its slowest host.

    An operation that occurs several times in a repeat takes the sum.

    Args:
        hosts: The records of the repeat, one per host.
    """
    slowest: dict[tuple[str, int], float] = {}
    for record in hosts:
        for sample in record.samples:
            if sample.metric == TIME:
                key = (sample.operation, sample.occurrence)
                slowest[key] = max(sample.value, slowest.get(key, sample.value))
    total: dict[str, float] = collections.defaultdict(float)
    for (operation, _), seconds in slowest.items():
        total[operation] += seconds
    return dict(total)
