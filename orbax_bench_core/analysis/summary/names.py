"""Names of the points of a run, and what tells them apart."""

import json
from collections.abc import Sequence
from typing import Any

from orbax_bench_core.analysis.names import shortened
from orbax_bench_core.records import Series


def short_names(every: Sequence[Series]) -> dict[str, str]:
    """Returns the name of each series without what all of them share, by its id.

    The benchmark is named where there are several. No two names are equal.
    """
    return shortened(
        {each.id: f"{each.name.partition('[')[0]}[{each.point.label}]" for each in every}
    )


def varying(every: Sequence[Series]) -> dict[str, dict[str, str]]:
    """Returns the fields that differ between the series: name, then each id's value as text."""
    found: dict[str, dict[str, str]] = {}
    for series in every:
        for name, value in _values(series).items():
            text = value if isinstance(value, str) else json.dumps(value)
            found.setdefault(name, {})[series.id] = text
    return {
        name: {series.id: values.get(series.id, "–") for series in every}
        for name, values in found.items()
        if len(set(values.values())) > 1 or len(values) < len(every)
    }


def _values(series: Series) -> dict[str, Any]:
    point = series.point
    return {
        **({"arm": series.arm} if series.arm else {}),
        "benchmark": series.name.partition("[")[0],
        **point.options,
        "mesh": "none" if point.mesh is None else point.mesh.label,
        "checkpoint": point.checkpoint.label,
        "storage": point.storage or "run directory",
        "environment": "none" if point.environment is None else point.environment.name,
        "processes": point.processes,
        "cache": point.conditions.cache,
        "host memory": point.conditions.host_memory,
    }
