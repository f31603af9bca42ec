"""Ratios between two sets of records, point by point, with no verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from orbax_bench_core.compare.identity import differences, nearest
from orbax_bench_core.results.record import Record
from orbax_bench_core.results.summary import MetricSummary, summarize
from orbax_bench_core.sweep.point import SweepPoint

NO_VERDICT = (
    "These are ratios of medians from two separate runs. They give no verdict: a machine that was "
    "busier during one of the runs shows here exactly as a regression would."
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One operation of one point in both runs.

    Attributes:
        point_id: Id of the sweep point.
        point: Name of the sweep point.
        operation: Name of the operation.
        baseline: Its time in the baseline, seconds.
        candidate: Its time in the candidate, seconds.
    """

    point_id: str
    point: str
    operation: str
    baseline: MetricSummary
    candidate: MetricSummary

    @property
    def ratio(self) -> float | None:
        """Median of the candidate over that of the baseline; above 1 is slower."""
        return self.candidate.median / self.baseline.median if self.baseline.median else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """A point that only one of the runs has.

    Attributes:
        point: Name and id of the point.
        differs: In which fields it differs from the nearest point of the other run.
    """

    point: str
    differs: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        ratios: Operations that both have, by point id.
        only_baseline: Points that only the baseline has.
        only_candidate: Points that only the candidate has.
    """

    ratios: tuple[Ratio, ...]
    only_baseline: tuple[Unmatched, ...]
    only_candidate: tuple[Unmatched, ...]


def compare(baseline: Iterable[Record], candidate: Iterable[Record]) -> Comparison:
    """Compares operation times; points are matched by id and by nothing else.

    Args:
        baseline: Records to compare with.
        candidate: Records that are looked at.
    """
    baseline, candidate = list(baseline), list(candidate)
    before, now = _by_operation(baseline), _by_operation(candidate)
    ratios = tuple(
        Ratio(
            point_id=time.point_id,
            point=time.point,
            operation=time.operation,
            baseline=before[key],
            candidate=time,
        )
        for key, time in now.items()
        if key in before
    )
    these, those = _points(baseline), _points(candidate)
    return Comparison(
        ratios=ratios,
        only_baseline=_unmatched(these, those),
        only_candidate=_unmatched(those, these),
    )


def _by_operation(records: Sequence[Record]) -> dict[tuple[str, str], MetricSummary]:
    operations = summarize(records).operations
    return {(found.time.point_id, found.time.operation): found.time for found in operations}


def _points(records: Sequence[Record]) -> dict[str, SweepPoint]:
    return {record.point_id: record.point for record in records}


def _unmatched(these: dict[str, SweepPoint], those: dict[str, SweepPoint]) -> tuple[Unmatched, ...]:
    found = []
    for point_id, point in these.items():
        if point_id not in those:
            other = nearest(point, those.values())
            differs = () if other is None else tuple(differences(point, other))
            found.append(Unmatched(point=f"{point.name} {point_id}", differs=differs))
    return tuple(found)
