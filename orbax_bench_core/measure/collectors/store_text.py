"""TensorStore's metrics as text: the only way to read them that keeps no memory.

TensorStore 0.1.86 loses the reference of every list that it makes of its metrics, 3 to 12 KB with
each reading. A soak, which looks for growth of that size, has to read the text instead. The text
rounds what is not a count to six digits.

Collector `store_answers` reads nothing but text: answers of an object store that are no success,
and retries.
"""

import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from orbax_bench_core.measure import observers
from orbax_bench_core.measure.collectors.base import Difference, Reading
from orbax_bench_core.measure.definition import Family, Metric

_LINE: Final = re.compile(r"(\w+)(?: ?\{(.*)\})? (\S+)$")
_END: Final = re.compile(r'le="([^"]*)"')
_HEAD: Final = "# HELP "
_SUFFIXES: Final = "MGTPE"
_FIRST_SUFFIX: Final = 19
_TYPE: Final = "# TYPE "

_as_text: observers.Slot[bool] = observers.Slot("reading_as_text")


class TextMetric(NamedTuple):
    """One metric of TensorStore, summed over its labels."""

    value: float  # a counter or gauge, or the largest value of a gauge that keeps nothing else
    observed: int  # number of observations of a histogram
    total: float  # of those observations
    buckets: dict[float, int]  # number of observations by the upper end of their bucket


def reading_as_text() -> contextlib.AbstractContextManager[None]:
    """Has the collectors of TensorStore's metrics read text while the context is open."""
    return _as_text.holding(True)


def as_text() -> bool:
    """Whether metrics are to be read as text."""
    return bool(_as_text.get())


def read(library: Any, prefix: str) -> dict[str, TextMetric]:
    """Returns the metrics below a prefix by name, with `_` for each `/`."""
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


_CODES: Final = "/tensorstore/http/response_codes"
_RETRIES: Final = "/tensorstore/kvstore/gcs/retries"
_LABELLED: Final = re.compile(r'\w+ ?\{code="([45]\d\d)"\} (\d+)$')
_PLAIN: Final = re.compile(r"tensorstore_kvstore_gcs_retries (\d+)$")
_NAME: Final = re.compile(r"6_tensorstore/http_([45]\d\d)_count$")
_KEY: Final = "store_answers"

RETRIES = Metric(
    name="6_tensorstore/gcs_retries_count",
    unit="count",
    better="lower",
    description="Requests to Cloud Storage that TensorStore made again; absent where none was",
    collector=_KEY,
)
METRICS = (RETRIES,)
FAMILIES = (
    Family(
        pattern="6_tensorstore/http_<code>_count",
        units="count",
        description=(
            "Answers with an HTTP status of 400 or more that TensorStore got; absent when there "
            "were none. 404 is normal: a save asks for what is not there yet"
        ),
        collector=_KEY,
        example="6_tensorstore/http_503_count",
    ),
)


class StoreAnswers(Difference[dict[str, int]]):
    """Counts of HTTP answers of 400 or more by their code, and of retries, end less start."""

    def __init__(self) -> None:
        import tensorstore

        self._library = tensorstore

    def _read(self) -> dict[str, int]:
        # Text, since what reads metrics as objects keeps some of them for good.
        read = self._library.experimental_collect_prometheus_format_metrics
        found = {}
        for line in read(_CODES):
            if labelled := _LABELLED.match(line):
                found[f"6_tensorstore/http_{int(labelled[1])}_count"] = int(labelled[2])
        for line in read(_RETRIES):
            if plain := _PLAIN.match(line):
                found[RETRIES.name] = int(plain[1])
        return found

    def _compare(self, before: dict[str, int], after: dict[str, int]) -> list[Reading]:
        added = {name: count - before.get(name, 0) for name, count in after.items()}
        return [Reading(name, float(count), "count") for name, count in added.items() if count]


def code_of(metric: str) -> int | None:
    """Returns the status code that a metric counts; None for another metric."""
    found = _NAME.match(metric)
    return None if found is None else int(found[1])


def resolve(name: str) -> Metric | None:
    """The metric of a name that counts answers with a status code, else None."""
    code = code_of(name)
    if code is None:
        return None
    return Metric(
        name=name,
        unit="count",
        better="none" if code == 404 else "lower",
        description=f"Answers with status {code} that TensorStore got",
        collector=_KEY,
    )
