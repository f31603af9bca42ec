"""Differences of two sweep points, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from orbax_bench_core.sweep.point import SweepPoint

_NOT_IDENTITY = {"label", "given"}


def differences(point: SweepPoint, other: SweepPoint) -> list[str]:
    """Returns each field in which two points differ, as `options.use_ocdbt: true, was false`."""
    these, those = _flat(point), _flat(other)
    return [
        f"{field}: {these.get(field, 'absent')}, was {those.get(field, 'absent')}"
        for field in dict.fromkeys([*these, *those])
        if these.get(field) != those.get(field)
    ]


def nearest(point: SweepPoint, others: Iterable[SweepPoint]) -> SweepPoint | None:
    """Returns the point of the same benchmark that differs in the fewest fields, or None."""
    candidates = [other for other in others if other.benchmark == point.benchmark]
    return min(candidates, key=lambda other: len(differences(point, other)), default=None)


def _flat(point: SweepPoint) -> dict[str, str]:
    found: dict[str, str] = {}
    _flatten(point.model_dump(mode="json", exclude=_NOT_IDENTITY), "", found)
    return found


def _flatten(value: Any, path: str, found: dict[str, str]) -> None:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            _flatten(inner, f"{path}.{key}" if path else key, found)
    else:
        found[path] = json.dumps(value)
