"""What comes first, and what a whole report comes down to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.compare.verdict import (
    OperationVerdict,
    PointVerdict,
    Unmatched,
    VerdictReport,
    Word,
)
from orbax_bench_core.report.verdicts.words import interval, ratio, share

_RANKS: Final[dict[Word, int]] = {"REGRESSION": 0, "INCONCLUSIVE": 1, "PASS": 2}


def worst_first(points: Sequence[PointVerdict]) -> list[PointVerdict]:
    """Returns points by verdict; among equals paired ones first, then those that failed."""
    return sorted(
        points,
        key=lambda point: (_RANKS[point.word], point.mode == "unpaired", not point.failed),
    )


def primary_first(point: PointVerdict) -> list[OperationVerdict]:
    """Returns the operations of a point, primary ones first, otherwise as they were."""
    return sorted(point.operations, key=lambda found: not found.primary)


def nearest_to_trouble(point: PointVerdict) -> OperationVerdict | None:
    """Returns the primary operation with the worst verdict and then the highest ratio.

    Args:
        point: The point; without primary operations there is none to return.
    """
    primary = [found for found in point.operations if found.primary]
    return min(primary, key=_trouble, default=None)


def headline(report: VerdictReport) -> str:
    """Returns what a report comes down to, in one sentence or two, without its word."""
    if not report.points:
        return "No point is in both arms, so that nothing was compared."
    if report.word == "REGRESSION":
        said = _regressed(report)
    elif report.word == "PASS":
        said = _passed(report)
    else:
        said = _undecided(report)
    if all(point.mode == "unpaired" for point in report.points):
        said += " The arms were run apart from each other: this is a warning, no proof."
    return said


def unmatched_line(found: Unmatched) -> str:
    """Returns which side alone has a point, and why it has no partner."""
    said = f"only in the {found.side}: {found.point}"
    if not found.differs:
        return said
    return f"{said} (the nearest point of the other side differs in {'; '.join(found.differs)})"


def _trouble(found: OperationVerdict) -> tuple[int, float]:
    value = found.verdict.ratio
    # What has no ratio could be anything, and comes first among its equals.
    high = math.inf if value is None or math.isnan(value) else value
    return _RANKS[found.verdict.word], -high


def _regressed(report: VerdictReport) -> str:
    regressed = [
        (point, found)
        for point in worst_first(report.points)
        for found in point.operations
        if found.primary and found.verdict.word == "REGRESSION"
    ]
    if not regressed:
        return "A point has regressed."
    # A proof is told before a warning.
    point, worst = min(regressed, key=lambda pair: (pair[0].mode == "unpaired", _trouble(pair[1])))
    said = (
        f"{worst.operation} takes {ratio(worst.verdict.ratio)} as long {interval(worst.verdict)} "
        f"in {point.point}."
    )
    if len(regressed) == 1:
        return said
    said += f" In all, {len(regressed)} primary operations regressed"
    if len(report.points) == 1:
        return f"{said}."
    return f"{said}, in {len({at.point_id for at, _ in regressed})} of {len(report.points)} points."


def _passed(report: VerdictReport) -> str:
    primary = [
        found.operation for point in report.points for found in point.operations if found.primary
    ]
    margins = {report.gate.rule(operation).margin for operation in primary}
    large = f"of {share(margins.pop())} or more" if len(margins) == 1 else "as large as its margin"
    return (
        f"A slow-down {large} is ruled out for {_count(len(primary), 'primary operation')} "
        f"of {_count(len(report.points), 'point')}."
    )


def _undecided(report: VerdictReport) -> str:
    open_points = [point for point in worst_first(report.points) if point.word == "INCONCLUSIVE"]
    said = (
        f"{len(open_points)} of {_count(len(report.points), 'point')} "
        f"{'has' if len(open_points) == 1 else 'have'} no verdict, which is not a pass."
    )
    failed = sum(point.failed for point in report.points)
    if failed:
        said += f" In {_count(failed, 'point')} an arm failed."
    nearest = [found for point in open_points if (found := nearest_to_trouble(point))]
    judged = [found for found in nearest if found.verdict.ratio is not None]
    if judged:
        worst = min(judged, key=_trouble)
        said += (
            f" The highest ratio is {ratio(worst.verdict.ratio)} {interval(worst.verdict)} "
            f"({worst.operation})."
        )
    return said


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
