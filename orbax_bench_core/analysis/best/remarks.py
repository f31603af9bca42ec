"""Remarks on a choice: flagged, retried and unverified repeats, and what was not measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from orbax_bench_core.analysis.best.advice import Choice
from orbax_bench_core.analysis.best.goals import MEASURES
from orbax_bench_core.analysis.best.observations import Observed
from orbax_bench_core.analysis.best.orbax_code import orbax_options
from orbax_bench_core.analysis.best.ranking import rank
from orbax_bench_core.analysis.best.words import listed, option
from orbax_bench_core.document import count
from orbax_bench_core.records import VERIFIED_WORDS, RunInfo

_TRUSTED: Final = ("saved", "reference")


def remarks(
    points: Sequence[Observed], choice: Choice, chosen: str | None, *, memory: bool
) -> tuple[str, ...]:
    """Returns what a reader must know of the repeats behind a ranking."""
    found = [*_flags(points, choice, chosen), *_retries(points), *_verification(points)]
    if memory and any(point.point.conditions.host_memory == "reused" for point in points):
        found.append(
            "peak memory is that of a worker which keeps what it freed for other points "
            "(host_memory: reused): an upper bound of what the point itself takes"
        )
    return tuple(found)


def _flags(points: Sequence[Observed], choice: Choice, chosen: str | None) -> Iterable[str]:
    flagged = [point for point in points if point.flagged]
    if not flagged:
        return
    repeats = sum(len(point.flagged) for point in flagged)
    kinds = dict.fromkeys(flag for point in flagged for flag in point.flagged.values())
    yield (
        f"{count(repeats, 'repeat')} of {count(len(flagged), 'point')} had {listed(list(kinds))}; "
        f"they are among these times. {_without(choice, chosen)}"
    )


def _without(choice: Choice, chosen: str | None) -> str:
    """Returns whether the answer would be the same without flagged repeats."""
    left = {
        id_: {at: v for at, v in of.items() if at not in choice.points[id_].flagged}
        for id_, of in choice.values.items()
    }
    ranked = rank(left)
    place = next((each for each in ranked if each.point == chosen), None)
    if place is None:
        return "Without them nothing is left of the point that is recommended"
    if place.tied is False:
        return (
            "Without them the point that is recommended would be behind "
            f"{choice.points[ranked[0].point].point.name}: do not trust the choice"
        )
    return "Without them the point that is recommended is still best or tied"


def _retries(points: Sequence[Observed]) -> Iterable[str]:
    retried = [point for point in points if point.retried]
    if retried:
        repeats = sum(len(point.retried) for point in retried)
        yield (
            f"{count(repeats, 'repeat')} of {count(len(retried), 'point')} passed only when tried "
            f"again, and count: {listed([point.point.name for point in retried])}"
        )


def _verification(points: Sequence[Observed]) -> Iterable[str]:
    for word, said in VERIFIED_WORDS.items():
        names = [point.point.name for point in points if point.verified and point.weakest == word]
        if names and word not in _TRUSTED:
            all_of_them = len(names) == len(points)
            which = f"all {len(names)} points" if all_of_them else count(len(names), "point")
            yield f"{which} {said}" + ("" if all_of_them else f": {listed(names)}")


def not_measured(
    points: Sequence[Observed], varied: Mapping[str, Sequence[Any]], info: RunInfo
) -> tuple[str, ...]:
    """Returns what the run says nothing of."""
    point = points[0].point
    known = {**orbax_options(point), **point.given_options}
    fixed = {
        name: setting for name, setting in (known or point.options).items() if name not in varied
    }
    found = []
    if fixed:
        settings = listed([option(name, setting) for name, setting in fixed.items()], most=20)
        found.append(f"not varied: {settings}")
    measured = {measure for each in points for measure in each.values}
    lacking = [measure for measure in MEASURES if measure not in measured]
    if lacking:
        found.append(f"not measured: {', '.join(lacking)}")
    unseen = [each.point.name for each in points if not each.rounds]
    if unseen:
        found.append(f"without a repeat that passed: {listed(unseen)}")
    if info.expansion.skipped:
        names = listed([skip.point.name for skip in info.expansion.skipped])
        found.append(f"skipped by the suite: {names}")
    platforms = sorted({each.platform for each in points if each.platform})
    if platforms == ["cpu"]:
        found.append(
            "an accelerator: these are CPU devices, on which staging from device to host costs "
            "nothing like there, and `blocking` says little of it"
        )
    found.append("other checkpoints, meshes, storage and numbers of hosts than those of this case")
    return tuple(found)
