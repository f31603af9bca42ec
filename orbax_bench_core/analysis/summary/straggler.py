"""Stragglers: the host that the others waited for, and the stage in which it was slow."""

from __future__ import annotations

import collections
import dataclasses
import statistics
from collections.abc import Sequence

from orbax_bench_core.measure import TIME, Sample, lookup
from orbax_bench_core.records import Record

_STAGES = ("2_save_breakdown/", "3_load_breakdown/")
_ByHost = dict[int, dict[str, float]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """The host that was slowest most often in one operation of one point.

    Attributes:
        host: Its index.
        slowest: Number of repeats in which it was the slowest.
        repeats: Number of repeats.
        excess_s: Seconds by which the slowest host exceeded the median host, median over repeats.
        stage: The timed stage in which it exceeded the median host by most; None when Orbax timed
            no stage of the operation.
        stage_excess_s: By how many seconds, mean over the repeats in which it was the slowest.
    """

    host: int
    slowest: int
    repeats: int
    excess_s: float
    stage: str | None
    stage_excess_s: float


class StragglerFinder:
    """Finds stragglers of one series; repeats of a single host say nothing."""

    def __init__(self) -> None:
        self._excess: dict[str, list[float]] = collections.defaultdict(list)
        self._slowest: dict[str, list[int]] = collections.defaultdict(list)
        self._stages: dict[tuple[str, int], dict[str, float]] = collections.defaultdict(
            lambda: collections.defaultdict(float)
        )

    def add(self, hosts: Sequence[Record]) -> None:
        """Takes the records of one repeat, one per host."""
        if len(hosts) < 2:
            return
        for operation, by_host in _by_operation(hosts).items():
            times = {host: metrics[TIME] for host, metrics in by_host.items()}
            slowest = max(times, key=times.__getitem__)
            self._slowest[operation].append(slowest)
            self._excess[operation].append(times[slowest] - statistics.median(times.values()))
            for stage, excess in _stage_excess(by_host, slowest).items():
                self._stages[operation, slowest][stage] += excess

    def found(self) -> dict[str, Straggler]:
        """Returns the straggler of each operation that ran on several hosts."""
        stragglers = {}
        for operation, hosts in self._slowest.items():
            [(host, count)] = collections.Counter(hosts).most_common(1)
            stages = self._stages[operation, host]
            stage = max(stages, key=stages.__getitem__, default=None)
            stragglers[operation] = Straggler(
                host=host,
                slowest=count,
                repeats=len(hosts),
                excess_s=statistics.median(self._excess[operation]),
                stage=stage,
                stage_excess_s=stages[stage] / count if stage is not None else 0.0,
            )
        return stragglers


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
