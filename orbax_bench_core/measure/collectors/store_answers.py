"""Collector `store_answers`: answers of an object store that are no success, and retries."""

import re
from typing import Final

from orbax_bench_core.measure.collectors.base import Difference, Reading
from orbax_bench_core.measure.definition import Family, Metric

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
