"""TensorStore's metrics as text: the only way to read them that keeps no memory.

TensorStore 0.1.86 loses the reference of every list that it makes of its metrics, 3 to 12 KB with
each reading. A soak, which looks for growth of that size, has to read the text instead. The text
rounds what is not a count to six digits.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from orbax_bench_core.measure import observers

_LINE: Final = re.compile(r"(\w+)(?: ?\{(.*)\})? (\S+)$")
_END: Final = re.compile(r'le="([^"]*)"')
_HEAD: Final = "# HELP "
_SUFFIXES: Final = "MGTPE"
_FIRST_SUFFIX: Final = 19
_TYPE: Final = "# TYPE "

_as_text: observers.Slot[bool] = observers.Slot("reading_as_text")


class TextMetric(NamedTuple):
    """One metric of TensorStore, summed over its labels.

    Attributes:
        value: Counter or gauge, or the largest value of a gauge that keeps nothing else.
        observed: Number of observations of a histogram.
        total: Sum of those observations.
        buckets: Number of observations by the upper end of their bucket.
    """

    value: float
    observed: int
    total: float
    buckets: dict[float, int]


def reading_as_text() -> contextlib.AbstractContextManager[None]:
    """Has the collectors of TensorStore's metrics read text while the context is open.

    Raises:
        RuntimeError: This does not nest.
    """
    return _as_text.holding(True)


def as_text() -> bool:
    """Whether metrics are to be read as text."""
    return bool(_as_text.get())


def read(library: Any, prefix: str) -> dict[str, TextMetric]:
    """Returns the metrics below a prefix by name, with `_` for each `/`.

    Args:
        library: The module `tensorstore`.
        prefix: For example `/tensorstore/kvstore/`.
    """
    values: defaultdict[str, float] = defaultdict(float)
    ends: defaultdict[tuple[str, str], dict[float, int]] = defaultdict(dict)
    names: dict[str, bool] = {}
    for line in library.experimental_collect_prometheus_format_metrics(prefix):
        if line.startswith(_HEAD):
            names.setdefault(line.split(" ", 3)[2], False)
        elif line.startswith(_TYPE):
            names[line.split(" ", 3)[2]] = line.endswith("histogram")
        elif found := _LINE.match(line):
            name, labels, number = found[1], found[2] or "", float(found[3])
            if name.endswith("_bucket") and (end := _END.search(labels)):
                series = name.removesuffix("_bucket"), _END.sub("", labels)
                ends[series][_number(end[1])] = int(number)
            else:
                values[name] += number
    buckets: defaultdict[str, Counter[float]] = defaultdict(Counter)
    for (name, _), cumulative in ends.items():
        buckets[name].update(_counts(cumulative))
    return {
        name: TextMetric(
            value=values[name] if name in values else values[f"{name}_max"],
            observed=int(values[f"{name}_count"]) if histogram else 0,
            total=values[f"{name}_sum"] if histogram else 0.0,
            buckets=dict(sorted(buckets[name].items())),
        )
        for name, histogram in names.items()
    }


def name_of(path: str) -> str:
    """Returns the name that text has for a metric, or for all those below a prefix."""
    return path.removeprefix("/").replace("/", "_")


def _number(end: str) -> float:
    """Returns the end of a bucket, a power of two.

    TensorStore names the ends 0, 1, 2, ... 262144, and goes on with 1M for 2^19, 2M, ... 256M, 1G
    for 2^28, and so on to 256E for 2^63 (`tensorstore/internal/metrics/histogram.cc`).
    """
    if end.removeprefix("+") == "Inf":
        return float("inf")
    if end[-1] in _SUFFIXES:
        return float(2 ** (_FIRST_SUFFIX + 9 * _SUFFIXES.index(end[-1])) * int(end[:-1]))
    return float(end)


def _counts(cumulative: Mapping[float, int]) -> dict[float, int]:
    """Returns the observations in each bucket; the text counts those below its end."""
    counts, below = {}, 0
    for end, count in sorted(cumulative.items()):
        counts[end], below = count - below, count
    return counts
