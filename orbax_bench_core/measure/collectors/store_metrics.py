"""TensorStore's metrics, summed over their labels: read as numbers or, in a soak, as text.

TensorStore 0.1.86 loses the reference of every list that it makes of its metrics, 3 to 12 KB with
each reading. A soak, which looks for growth of that size, has to read the text instead: the only
way that keeps no memory. The text rounds what is not a count to six digits.
"""

import contextlib
import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from orbax_bench_core.measure import observers

_MULTIPLES: Final = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
"""Units of the ends of buckets, in the numbers."""
_LINE: Final = re.compile(r"(\w+)(?: ?\{(.*)\})? (\S+)$")
_END: Final = re.compile(r'le="([^"]*)"')
_HEAD: Final = "# HELP "
_SUFFIXES: Final = "MGTPE"
_FIRST_SUFFIX: Final = 19
_TYPE: Final = "# TYPE "

_as_text: observers.Slot[bool] = observers.Slot("reading_as_text")


class StoreMetric(NamedTuple):
    """One metric of TensorStore, summed over its labels."""

    value: float = 0  # a counter or gauge, or the largest value of a gauge that keeps nothing else
    observed: int = 0  # number of observations of a histogram
    total: float = 0  # sum of those observations
    # number of observations by the upper end of their bucket, which is itself outside of it
    buckets: Mapping[float, int] = MappingProxyType({})


def reading_as_text() -> contextlib.AbstractContextManager[None]:
    """Has the collectors of TensorStore's metrics read text while the context is open."""
    return _as_text.holding(True)


def as_text() -> bool:
    """Whether metrics are to be read as text."""
    return bool(_as_text.get())


def read(library: Any, prefix: str) -> dict[str, StoreMetric]:
    """Reads the metrics below a prefix, such as `/tensorstore/cache/`.

    Returns:
        Each metric by its name without the first `/`, and with `_` for every other one. The library
        leaves out what never counted anything.
    """
    return _read_text(library, prefix) if as_text() else _read_numbers(library, prefix)


def _read_numbers(library: Any, prefix: str) -> dict[str, StoreMetric]:
    return {
        name_of(metric["name"]): _sum_labels(metric["values"])
        for metric in library.experimental_collect_matching_metrics(prefix)
    }


def _sum_labels(entries: list[dict[str, Any]]) -> StoreMetric:
    value = total = 0.0
    observed = 0
    buckets: Counter[float] = Counter()
    for entry in entries:
        number = entry.get("value", entry.get("max_value"))
        if isinstance(number, int | float):
            value += number
        if "count" in entry:
            observed += entry["count"]
            total += entry["count"] * entry["mean"]
            for end, count in _buckets_of(entry):
                buckets[end] += count
    return StoreMetric(value, observed, total, buckets)


def _buckets_of(entry: Mapping[str, float]) -> Iterator[tuple[float, int]]:
    """Yields the upper end of each bucket in a histogram's entry, and the observations in it."""
    # A bucket begins where the one before it ends, at half of its own end. TensorStore 0.1.86
    # labels those from half a mebi on ("1M", ...) with twice their end, which still is an upper
    # bound.
    for label, count in entry.items():
        end = _end_of(label)
        if end is not None:
            yield end, int(count)


@functools.cache  # the labels are powers of two, and the names of a few fields
def _end_of(label: str) -> float | None:
    digits, multiple = label, 1
    if label[-1:] in _MULTIPLES:
        digits, multiple = label[:-1], _MULTIPLES[label[-1]]
    return float(digits) * multiple if digits.isdecimal() else None


def _read_text(library: Any, prefix: str) -> dict[str, StoreMetric]:
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
        name: StoreMetric(
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
    """Returns the end of a bucket, a power of two."""
    # TensorStore names the ends 0, 1, 2, ... 262144, and goes on with 1M for 2^19, 2M, ... 256M, 1G
    # for 2^28, and so on to 256E for 2^63 (`tensorstore/internal/metrics/histogram.cc`).
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
