"""Figures of a recording: times of saves, steps next to them, memory kept, hosts, phases."""

from __future__ import annotations

import collections
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import numpy as np

from orbax_bench_core.analysis import soak
from orbax_bench_core.analysis.recording import model
from orbax_bench_core.analysis.recording.reading import Life, Operation, Recording
from orbax_bench_core.measure import event_metric

_MIB: Final = 2**20
_FEWEST_STEPS: Final = 30
"""Steps on each side that a comparison needs."""
_FEWEST_INTERVALS: Final = 6
_DRAWS: Final = 1000
_SHOWN_PHASES: Final = 10
_SHOWN_HOSTS: Final = 16
Level = Literal["host", "device"]


def times_of(values: Iterable[float]) -> model.Times | None:
    """Returns the figures of some seconds; None without any."""
    found = list(values)
    if not found:
        return None
    return model.Times(
        count=len(found), median=statistics.median(found), most=max(found), total=sum(found)
    )


def steps_of(recording: Recording) -> model.StepFigures | None:
    """Compares steps next to a background save with others, by intervals between saves.

    Steps of one interval share what goes on at that time, so whole intervals are drawn.

    The interval of the ratio is a bootstrap (Efron 1979) that draws whole intervals with
    replacement.

    Returns:
        Medians in seconds. `ratio` compares mean steps within background saves with those outside,
        with its 95 % interval; it is missing where there are too few of either. None without any
        step.
    """
    own_all: list[float] = []
    tables: list[np.ndarray[Any, np.dtype[np.float64]]] = []
    for number, life in enumerate(recording.lives):
        operations = [one for one in recording.operations if one.life == number]
        own, inside, outside, group = _sorted_steps(life, operations)
        own_all += own.tolist()
        weights = (own * inside, inside, own * outside, outside)
        tables.append(np.stack([np.bincount(group, each) for each in weights], axis=1))
    if not own_all:
        return None
    figures = model.StepFigures(count=len(own_all), median=statistics.median(own_all))
    table = np.concatenate(tables)
    if min(table[:, 1].sum(), table[:, 3].sum()) < _FEWEST_STEPS or len(table) < _FEWEST_INTERVALS:
        return figures
    rng = np.random.default_rng(len(own_all))
    # One draw after the other: of a job that saves 100,000 times all at once take gigabytes.
    draws = (rng.integers(0, len(table), len(table)) for _ in range(_DRAWS))
    sums = np.stack([table[drawn].sum(0) for drawn in draws])
    sums = sums[(sums[:, 1] > 0) & (sums[:, 3] > 0)]
    ratios = (sums[:, 0] / sums[:, 1]) / (sums[:, 2] / sums[:, 3])
    low, high = np.quantile(ratios, [0.025, 0.975])
    all_in, n_in, all_out, n_out = table.sum(0)
    usual = all_out / n_out
    saves = max(1, sum(one.is_whole for one in recording.saves))
    return figures.model_copy(
        update={
            "ratio": float(all_in / n_in / usual),
            "low": float(low),
            "high": float(high),
            "lost_s": max(0.0, float(all_in - n_in * usual)) / saves,
        }
    )


def _sorted_steps(life: Life, operations: Sequence[Operation]) -> tuple[Any, Any, Any, Any]:
    """Returns own seconds of each step, whether a background save or nothing ran, and its group."""
    numbers, begins, seconds = np.array(life.steps, np.float64).reshape(-1, 3).T
    if len(numbers) > 1 and np.median(np.diff(numbers)) > 1:
        begins = seconds = numbers[:0]  # only those of saves are known, not the ones between
    ends = begins + seconds
    own, covered = seconds.copy(), np.zeros_like(seconds)
    loading = np.zeros(seconds.shape, bool)
    loading[:2] = True  # the first ones compile
    starts = []
    for operation in operations:
        part = operation.first
        call, total = part.call_s or 0.0, part.total_s or part.call_s or 0.0
        _add(own, begins, ends, part.t, part.t + call, -1.0)
        if operation.what == "load":
            loading |= (ends > part.t) & (begins < part.t + total)
        else:
            starts.append(part.t)
            _add(covered, begins, ends, part.t + call, part.t + total, 1.0)
    for begin, waited in life.waits:
        _add(own, begins, ends, begin, begin + waited, -1.0)
    own = np.maximum(own, 0.0)
    inside = ~loading & (covered > 0.5 * own)
    outside = ~loading & (covered == 0)
    return own, inside, outside, np.searchsorted(np.array(sorted(starts)), begins)


def _add(to: Any, begins: Any, ends: Any, begin: float, end: float, sign: float) -> None:
    """Adds to each step what it shares with a span."""
    first, last = np.searchsorted(ends, begin), np.searchsorted(begins, end)
    here = slice(int(first), int(last))
    shared = np.minimum(ends[here], end) - np.maximum(begins[here], begin)
    to[here] += sign * np.maximum(shared, 0.0)


def kept_of(recording: Recording) -> list[model.Kept]:
    """Returns the growth of memory per save of each host, by its longest life; the most first.

    Returns:
        Growth in MiB per save, of resident memory and of device memory.
    """
    levels: dict[tuple[int, Level], dict[int, list[float]]] = collections.defaultdict(dict)
    for one in recording.saves:
        for host, part in one.parts.items():
            sizes: dict[Level, tuple[int, ...]] = {"host": part.rss, "device": part.device}
            for level, found in sizes.items():
                if found:
                    levels[host, level].setdefault(one.life, []).append(found[0] / _MIB)
    kept = [_kept(level, host, max(by.values(), key=len)) for (host, level), by in levels.items()]
    return sorted(kept, key=lambda one: -(one.per_save or 0.0))[:_SHOWN_HOSTS]


def _kept(level: Level, host: int, values: list[float]) -> model.Kept:
    if len(values) < soak.FEWEST:
        return model.Kept(level=level, host=host, saves=len(values), word="INCONCLUSIVE")
    counted = values[soak.DROPPED :]
    whole, half = soak.slope_of(counted), soak.slope_of(counted[len(counted) // 2 :])
    return model.Kept(
        level=level,
        host=host,
        saves=len(values),
        per_save=whole.per_save,
        low=whole.low,
        high=whole.high,
        word=soak.word_of(whole, half, soak.LIMIT_MIB),
    )


def hosts_of(recording: Recording) -> list[model.HostFigures]:
    """Returns the figures of each host, the slowest first.

    Returns:
        Medians in seconds, and the highest peak of memory during a save in MiB; no more than a page
        shows.
    """
    found = []
    nodes = {host: line.node for life in recording.lives for host, line in life.hosts.items()}
    for host, node in nodes.items():
        parts = [one.parts[host] for one in recording.saves if one.is_whole and host in one.parts]
        own = times_of(part.own_s[0] for part in parts if part.own_s is not None)
        blocked = times_of(part.blocked_s for part in parts)
        found.append(
            model.HostFigures(
                host=host,
                node=node,
                saves=len(parts),
                own=None if own is None else own.median,
                blocked=None if blocked is None else blocked.median,
                peak=max(((p.rss[1] - p.rss[0]) / _MIB for p in parts if p.rss), default=None),
            )
        )
    return sorted(found, key=lambda one: -(one.own or 0.0))[:_SHOWN_HOSTS]


def phases_of(operations: Iterable[Operation], host: int | None = None) -> dict[str, model.Phase]:
    """Returns the phases of some operations, by event.

    Args:
        operations: Saves or loads.
        host: Whose events are read; None takes the first host of each.

    Returns:
        Median seconds and thread, by event of Orbax that is a duration.
    """
    seconds: dict[str, list[float]] = collections.defaultdict(list)
    threads: dict[str, str] = {}
    for operation in operations:
        part = operation.first if host is None else operation.parts[host]
        for event, (_, total, _, thread) in part.events.items():
            seconds[event].append(total)
            threads[event] = thread
    found = {}
    for event, values in seconds.items():
        metric = event_metric("duration", event)
        if metric is not None and metric.unit == "s" and metric.better == "lower":
            name = metric.name.rpartition("/")[2]
            found[event] = model.Phase(
                name=name, thread=threads[event], median=statistics.median(values)
            )
    return found


def longest_phases(recording: Recording) -> tuple[model.Phase, ...]:
    """Returns the longest phases of the saves of the first host, each name once."""
    found = phases_of(one for one in recording.saves if one.is_whole)
    once = {phase.name: phase for phase in found.values()}
    ranked = sorted(once.values(), key=lambda phase: -phase.median)
    return tuple(phase for phase in ranked if phase.median > 0)[:_SHOWN_PHASES]
