"""Verification of the points of a run: which were compared with what, in lines for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from orbax_bench_core.records import VERIFIED_WORDS, Verified

if TYPE_CHECKING:
    from orbax_bench_core.analysis.summary.model import PointStatus

_TRUSTED: Final = ("saved", "reference")
_FEW: Final = 8
"""So many points are named; of more, the rest is counted."""


def verification_lines(points: Iterable[PointStatus]) -> list[tuple[str, bool]]:
    """Returns a line per object of comparison, and whether it says that something is not verified.

    Points that are not verified are named. Points of which no repeat passed are left out.
    """
    names: dict[Verified, list[str]] = {word: [] for word in VERIFIED_WORDS}
    for point in points:
        if point.passed:
            names[point.verified].append(f"{point.point} {point.point_id}")
    return [(_line(word, found), word not in _TRUSTED) for word, found in names.items() if found]


def _line(word: Verified, names: list[str]) -> str:
    count = f"{len(names)} point{'' if len(names) == 1 else 's'}"
    if word in _TRUSTED:
        return f"{count} {VERIFIED_WORDS[word]}"
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return f"{count} {VERIFIED_WORDS[word]}: {', '.join(names[:_FEW])}{more}"
