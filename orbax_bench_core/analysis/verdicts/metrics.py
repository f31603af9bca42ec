"""Metrics of both arms: medians, deltas and overlap."""

import bisect
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from orbax_bench_core.analysis.verdicts.model import MetricChange
from orbax_bench_core.measure import Better, block_name, lookup
from orbax_bench_core.records import Repeat

_Key = tuple[str, str]
"""Operation, with its `[occurrence]` from the second on, and metric."""
_REDUCED: Final[Mapping[Better, Callable[[Sequence[float]], float]]] = {
    "lower": max,
    "higher": min,
    "none": statistics.fmean,
}
"""The value of a repeat by those of its hosts."""


class _Kind(NamedTuple):
    """Definition of a metric of an operation, as far as it is known."""

    unit: str
    better: Better


def compare_metrics(
    baseline: Iterable[Repeat], candidate: Iterable[Repeat]
) -> tuple[MetricChange, ...]:
    """Returns every metric that an arm has measured, in the order of measurement.

    Each repeat that counts has one value: that of the worst host or, where no direction is better,
    the mean over the hosts. Values that are not finite are left out.
    """
    kinds: dict[_Key, _Kind] = {}
    was, now = (_values(repeats, kinds) for repeats in (baseline, candidate))
    return tuple(
        _change(key, kind, was.get(key, ()), now.get(key, ())) for key, kind in kinds.items()
    )


def compare_means(
    means: Mapping[_Key, float], candidate: Iterable[Repeat]
) -> tuple[MetricChange, ...]:
    """Returns every metric of a baseline of which only means are known, and of a candidate.

    Both are the mean over the repeats and the hosts. A metric that only the baseline has has the
    unit of its definition.
    """
    kinds: dict[_Key, _Kind] = {}
    now = _values(candidate, kinds, dict.fromkeys(_REDUCED, statistics.fmean))
    return tuple(
        MetricChange(
            operation=key[0],
            metric=key[1],
            unit=kind.unit,
            better=kind.better,
            baseline=(before := means.get(key)),
            candidate=(after := statistics.fmean(now[key]) if key in now else None),
            repeats={"baseline": 0, "candidate": len(now.get(key, ()))},
            delta=_delta(before, after),
            apart=None,
        )
        for key, kind in {**{key: _known(key[1]) for key in means}, **kinds}.items()
    )


def _values(
    repeats: Iterable[Repeat],
    kinds: dict[_Key, _Kind],
    reduced: Mapping[Better, Callable[[Sequence[float]], float]] = _REDUCED,
) -> dict[_Key, list[float]]:
    """Returns one value per repeat of each metric, and notes their kinds."""
    found: dict[_Key, list[float]] = {}
    for repeat in repeats:
        if not repeat.counts:
            continue
        here: dict[_Key, list[float]] = {}
        for record in repeat.records.values():
            for sample in record.samples:
                if math.isfinite(sample.value):
                    key = block_name(sample.operation, sample.occurrence), sample.metric
                    if key not in kinds:
                        kinds[key] = _Kind(sample.unit, _known(key[1]).better)
                    here.setdefault(key, []).append(sample.value)
        for key, of_hosts in here.items():
            found.setdefault(key, []).append(reduced[kinds[key].better](of_hosts))
    return found


def _change(key: _Key, kind: _Kind, was: Sequence[float], now: Sequence[float]) -> MetricChange:
    before = statistics.median(was) if was else None
    after = statistics.median(now) if now else None
    return MetricChange(
        operation=key[0],
        metric=key[1],
        unit=kind.unit,
        better=kind.better,
        baseline=before,
        candidate=after,
        repeats={"baseline": len(was), "candidate": len(now)},
        delta=_delta(before, after),
        apart=_apart(was, now) if was and now else None,
    )


def _delta(before: float | None, after: float | None) -> float | None:
    if before is None or after is None:
        return None
    if before == after:
        return 0.0
    return (after - before) / abs(before) if before else None


def _apart(was: Sequence[float], now: Sequence[float]) -> float:
    """Returns Cliff's delta: P(candidate > baseline) - P(candidate < baseline)."""
    ordered = sorted(was)
    above = sum(bisect.bisect_left(ordered, value) for value in now)
    below = sum(len(ordered) - bisect.bisect_right(ordered, value) for value in now)
    return (above - below) / (len(was) * len(now))


def _known(metric: str) -> _Kind:
    try:
        found = lookup(metric)
    except KeyError:
        return _Kind("", "none")
    return _Kind(found.unit, found.better)
