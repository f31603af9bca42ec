"""Names of the series of a run by what tells them apart, and the values that vary."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orbax_bench_core.records import Series

_COMMA: Final = re.compile(r",(?![^\[\](){}]*[\])}])")


def short_names(every: Sequence[Series]) -> dict[str, str]:
    """Returns the name of each series without what all of them share, by its id.

    The benchmark is named where there are several. No two names are equal.
    """
    return shortened(
        {each.id: f"{each.name.partition('[')[0]}[{each.point.label}]" for each in every}
    )


def shortened(names: Mapping[str, str]) -> dict[str, str]:
    """Returns `BENCHMARK[LABEL]`, by any ids, without what all labels share; see `short_names`."""
    halves = {id_: name.removesuffix("]").partition("[") for id_, name in names.items()}
    benchmarks = {id_: benchmark for id_, (benchmark, _, _) in halves.items()}
    parts = {id_: _COMMA.split(label) for id_, (_, _, label) in halves.items()}
    shared = frozenset.intersection(*map(frozenset, parts.values())) if len(names) > 1 else ()
    several = len(set(benchmarks.values())) > 1
    short = {}
    for id_, found in parts.items():
        own = ",".join(part for part in found if part and part not in shared)
        whole = f"{benchmarks[id_]}[{own}]" if several and own else own
        short[id_] = whole or benchmarks[id_]
    count = collections.Counter(short.values())
    return {id_: name if count[name] == 1 else f"{name} {id_[:6]}" for id_, name in short.items()}


def varying(every: Sequence[Series]) -> dict[str, dict[str, str]]:
    """Returns what differs between the series: by its name, the value of each id as text."""
    found: dict[str, dict[str, str]] = {}
    for series in every:
        for name, value in _values(series).items():
            found.setdefault(name, {})[series.id] = _text(value)
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


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
