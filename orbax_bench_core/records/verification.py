"""Verification of restored values: against what, over several comparisons, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from orbax_bench_core.records.record import Verified

_STRONGEST_FIRST: Final[tuple[Verified, ...]] = ("saved", "reference", "itself", "unknown", "none")

VERIFIED_WORDS: Final[Mapping[Verified, str]] = MappingProxyType(
    {
        "saved": "verified against what was saved",
        "reference": "verified against a reference",
        "itself": (
            "not verified: compared only with another load of the same bytes, as no reference is "
            "known"
        ),
        "none": "not verified: nothing was compared",
        "unknown": "verified, but the record does not say against what",
    }
)
"""Words on each object of comparison, for people."""


def weakest(found: Iterable[Verified]) -> Verified:
    """Returns what can be said of several comparisons together; of none of them, `none`."""
    return max(found, key=_STRONGEST_FIRST.index, default="none")
