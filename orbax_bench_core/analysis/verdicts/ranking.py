"""Ranking of points and operations: the worst first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict
from orbax_bench_core.gate import Word

_RANKS: Final[dict[Word, int]] = {"REGRESSION": 0, "INCONCLUSIVE": 1, "PASS": 2}


def worst_first(points: Sequence[PointVerdict]) -> list[PointVerdict]:
    """Returns points by verdict; among equals paired ones first, then those that failed."""
    return sorted(
        points,
        key=lambda point: (_RANKS[point.word], point.mode == "unpaired", not point.failed),
    )


def primary_first(point: PointVerdict) -> list[OperationVerdict]:
    """Returns the operations of a point, primary ones first, otherwise as they were."""
    return sorted(point.operations, key=lambda operation: not operation.primary)


def nearest_to_trouble(point: PointVerdict) -> OperationVerdict | None:
    """Returns the primary operation with the worst verdict and then the highest ratio, if any."""
    primary = [operation for operation in point.operations if operation.primary]
    return min(primary, key=trouble, default=None)


def trouble(operation: OperationVerdict) -> tuple[int, float]:
    """Returns a key by which the worst verdict comes first, and of equals the highest ratio."""
    value = operation.verdict.ratio
    # What has no ratio could be anything, and comes first among its equals.
    high = math.inf if value is None or math.isnan(value) else value
    return _RANKS[operation.verdict.word], -high
