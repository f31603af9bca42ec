"""Names as all answers give them: of points, of operations in words, of options with a value."""

import collections
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from orbax_bench_core.measure import OF_CPU

SPOKEN: Final = {
    "save": "saves",
    "save_blocking": "blocking saves",
    "save_background": "background saves",
    "save_durable": "durable saves",
    "load": "loads",
    "restore": "restores",
    "delete": "deletions",
    "recovery": "recoveries",
    "blocking": "blocking saves",
    "bytes": "bytes on storage",
    "memory": "peak memory",
    "step_p99": "the 99th percentile of training steps",
    "step_max": "the longest training step",
}
"""Operations, and the goals of a choice that are none, as the subject of a sentence."""
# Not those within brackets, of an option that is a list or a mapping.
_COMMA: Final = re.compile(r",(?![^\[\](){}]*[\])}])")


def shortened(names: Mapping[str, str]) -> dict[str, str]:
    """Returns `BENCHMARK[LABEL]`, by any ids, without what all of them share.

    The benchmark is named where there are several. No two names are equal.
    """
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


def spoken(operation: str) -> str:
    """Returns an operation as the subject of a sentence, such as `blocking saves`."""
    name = operation.removesuffix(OF_CPU)
    said = SPOKEN.get(name, f"{name} operations")
    return f"CPU times of {said}" if name != operation else said


def heading(operation: str) -> str:
    """Returns an operation as a heading, such as `save, blocking`."""
    return re.sub("_(blocking|background|durable)(?=:|$)", r", \1", operation)


def setting_text(setting: Any) -> str:
    """Returns the value of an option as JSON, a text without quotes."""
    return setting if isinstance(setting, str) else json.dumps(setting)
