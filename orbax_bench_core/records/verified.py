"""What restored values were compared with: the words, strongest first, and the weakest of some."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal

Verified = Literal["saved", "reference", "itself", "none"]
"""Object of comparison of restored values: what was saved, a reference that another run recorded,
only another load of the same bytes, or nothing."""

_STRONGEST_FIRST: Final[tuple[Verified, ...]] = ("saved", "reference", "itself", "none")

VERIFIED_WORDS: Final[Mapping[Verified, str]] = MappingProxyType(
    {
        "saved": "verified against what was saved",
        "reference": "verified against a reference",
        "itself": (
            "not verified: compared only with another load of the same bytes, as no reference is "
            "known"
        ),
        "none": "not verified: nothing was compared",
    }
)
"""Words on each object of comparison, for people."""


def weakest(found: Iterable[Verified]) -> Verified:
    """Combines the words of several comparisons; of none of them, `none`."""
    return max(found, key=_STRONGEST_FIRST.index, default="none")
