"""Past differences: log ratios between successive captured runs of the same point."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from orbax_bench_core.baselines.model import Capture
from orbax_bench_core.baselines.store import Registry
from orbax_bench_core.provenance import other_surroundings
from orbax_bench_core.records import Record, seconds_per_repeat

Past = Mapping[tuple[str, str], tuple[float, ...]]
"""Log ratios of the medians of successive runs, by point id and operation."""


def past_log_ratios(registry: Registry, candidate: Iterable[Record]) -> Past:
    """Returns by how much successive captured runs differed, for the points of a run.

    Each run counts once, in the order in which they were measured. The candidate's own run is left
    out, and so is what was measured on another machine or storage.
    """
    from orbax_bench_core.gate import run_log_ratio

    records = list(candidate)
    points = {record.point_id: record for record in reversed(records)}
    own = {record.run_id for record in records}
    wanted = [
        (capture.reference, point.point_id)
        for capture in _each_run_once(registry.captures())
        if capture.run_id not in own
        for point in capture.points
        if point.point_id in points
    ]
    times: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for baseline in registry.baselines(wanted):
        if other_surroundings(baseline.records[0].provenance, points[baseline.point_id].provenance):
            continue
        for operation, seconds in seconds_per_repeat(baseline.records).items():
            if all(value > 0 for value in seconds):
                times.setdefault((baseline.point_id, operation), []).append(seconds)
    return {
        key: tuple(run_log_ratio(before, now) for before, now in itertools.pairwise(runs))
        for key, runs in times.items()
    }


def _each_run_once(captures: Iterable[Capture]) -> list[Capture]:
    """Returns captures in the order of measurement; both arms of a run are one run."""
    once = {capture.run_id: capture for capture in captures}
    return sorted(once.values(), key=lambda capture: (capture.measured_at, capture.id))
