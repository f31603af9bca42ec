"""Names in reports: of points without what all of them share, and of operations in words."""

import collections
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orbax_bench_core.records import Series

_COMMA: Final = re.compile(r",(?![^\[\](){}]*[\])}])")
_OPERATIONS: Final = {
    "save": "saves",
    "save_blocking": "blocking saves",
    "load": "loads",
    "restore": "loads",
    "delete": "deletions",
}


def in_words(operation: str) -> str:
    """Returns an operation as the subject of a sentence, such as `blocking saves`."""
    return _OPERATIONS.get(operation) or f"`{operation}`"


def named(operation: str) -> str:
    """Returns an operation as a heading, such as `save, blocking`."""
    return re.sub("_(blocking|background)$", r", \1", operation)


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
