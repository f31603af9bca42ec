"""How long each operation of one repeat took."""

from __future__ import annotations

import collections
from collections.abc import Iterable

from orbax_bench_core.results.record import Record
from orbax_bench_core.results.summary import TIME


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
