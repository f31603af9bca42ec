"""TensorStore's metrics, summed over their labels.

They are read as text. TensorStore 0.1.86 loses the reference of every list of numbers that it makes
of its metrics, 3 to 12 KB with each reading: a soak would call that a leak of the saves. The text
rounds what is not a count to six digits, which a mean over a block shows once a process has summed
up tens of thousands of times as much.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

_LINE: Final = re.compile(r"(\w+)(?: ?\{(.*)\})? (\S+)$")
_END: Final = re.compile(r'le="([^"]*)"')
_HEAD: Final = "# HELP "
_SUFFIXES: Final = "MGTPE"
_FIRST_SUFFIX: Final = 19
_TYPE: Final = "# TYPE "


class StoreMetric(NamedTuple):
    """One metric of TensorStore, summed over its labels."""

    value: float = 0  # a counter or gauge, or the largest value of a gauge that keeps nothing else
    observed: int = 0  # number of observations of a histogram
    total: float = 0  # sum of those observations
    # number of observations by the upper end of their bucket, which is itself outside of it
    buckets: Mapping[float, int] = MappingProxyType({})


def read(library: Any, prefix: str) -> dict[str, StoreMetric]:
    """Reads the metrics below a prefix, such as `/tensorstore/cache/`; see `parse`."""
    return parse(library.experimental_collect_prometheus_format_metrics(prefix))


def parse(lines: Iterable[str]) -> dict[str, StoreMetric]:
    """Returns each metric of a text of TensorStore by its name, in which `_` stands for `/`."""
    values: defaultdict[str, float] = defaultdict(float)
    buckets: defaultdict[str, Counter[float]] = defaultdict(Counter)
    names: dict[str, bool] = {}
    for line in lines:
        if line.startswith(_HEAD):
            names.setdefault(line.split(" ", 3)[2], False)
        elif line.startswith(_TYPE):
            names[line.split(" ", 3)[2]] = line.endswith("histogram")
        elif found := _LINE.match(line):
            name, labels, number = found[1], found[2] or "", float(found[3])
            if name.endswith("_bucket") and (end := _END.search(labels)):
                buckets[name.removesuffix("_bucket")][_number(end[1])] += int(number)
            else:
                values[name] += number
    for counts in buckets.values():
        # Unlike Prometheus, 0.1.86 counts the observations of each bucket alone, and only under
        # +Inf those of all: what no bucket has is beyond the last one.
        counts[math.inf] = 2 * counts[math.inf] - counts.total()
    return {
        name: StoreMetric(
            value=values[name] if name in values else values[f"{name}_max"],
            observed=int(values[f"{name}_count"]) if histogram else 0,
            total=values[f"{name}_sum"] if histogram else 0.0,
            buckets=dict(sorted(buckets[name].items())),
        )
        for name, histogram in names.items()
    }


def _number(end: str) -> float:
    """Returns the end of a bucket, a power of two."""
    # TensorStore names the ends 0, 1, 2, ... 262144, and goes on with 1M for 2^19, 2M, ... 256M, 1G
    # for 2^28, and so on to 256E for 2^63 (`tensorstore/internal/metrics/histogram.cc`).
    if end.removeprefix("+") == "Inf":
        return math.inf
    if end[-1] in _SUFFIXES:
        return float(2 ** (_FIRST_SUFFIX + 9 * _SUFFIXES.index(end[-1])) * int(end[:-1]))
    return float(end)
