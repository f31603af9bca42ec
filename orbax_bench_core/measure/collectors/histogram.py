"""Quantiles of what a TensorStore histogram counted between two readings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

# Number of observations by the upper end of their bucket; an end is itself outside its bucket.
Buckets = Mapping[float, int]

NO_BUCKETS: Buckets = MappingProxyType({})

_MULTIPLES = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}


def buckets_of(entry: Mapping[str, float]) -> Iterator[tuple[float, int]]:
    """The buckets in one histogram's entry, among its count, its mean and its labels.

    A bucket begins where the one before it ends, at half of its own end. TensorStore 0.1.86 labels
    those from half a mebi on ("1M", ...) with twice their end, which still is an upper bound.

    Yields:
        The upper end of a bucket, and the number of observations in it.
    """
    for label, count in entry.items():
        digits, multiple = label, 1
        if label[-1:] in _MULTIPLES:
            digits, multiple = label[:-1], _MULTIPLES[label[-1]]
        if digits.isdecimal():
            yield float(digits) * multiple, int(count)


def quantile_bound(before: Buckets, after: Buckets, share: float) -> float | None:
    """An upper bound of a quantile of the observations that came between two readings.

    Args:
        before: Buckets at the first reading.
        after: Buckets at the second.
        share: Which quantile, in (0, 1]; for example 0.99.

    Returns:
        The smallest end of a bucket below which at least `share` of the observations lie; None
        when there were none.
    """
    added = {end: count - before.get(end, 0) for end, count in sorted(after.items())}
    needed = math.ceil(share * sum(added.values()))
    if needed <= 0:
        return None
    for end, count in added.items():
        needed -= count
        if needed <= 0:
            return end
    return None
