"""Choosing a capture, and making it the baseline."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.compare.registry.model import Capture, Promotion
from orbax_bench_core.compare.registry.store import Registry, state_after
from orbax_bench_core.config.errors import SuiteError

LATEST: Final = "latest"
PREVIOUS: Final = "previous"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Promoted:
    """What a promotion did.

    Attributes:
        promotion: The promotion.
        replaced: Reference of the capture that was each point's baseline before it, by point id;
            None for a point that had none.
        overtaken: Another promotion of the same moment that has the last word on some of the
            points; None when this one has it.
    """

    promotion: Promotion
    replaced: dict[str, str | None]
    overtaken: Promotion | None


def find_capture(captures: Sequence[Capture], name: str) -> Capture:
    """Returns the capture that a name means.

    Args:
        captures: All captures, the oldest first.
        name: `latest`, an id or the beginning of a single one, a reference as `Capture.reference`,
            or a revision, which means its newest capture.

    Raises:
        SuiteError: No capture is called so, or several are.
    """
    if not captures:
        raise SuiteError("nothing was captured here; capture a run with `baseline capture`")
    if name == LATEST:
        return captures[-1]
    exact = [one for one in captures if name in (one.id, one.reference, one.revision)]
    begin = {one.id: one for one in captures if one.id.startswith(name)}
    revisions = {one.revision: one for one in captures if one.revision.startswith(name)}
    if exact:
        return exact[-1]
    if len(begin) == 1:
        return begin.popitem()[1]
    if not begin and len(revisions) == 1:
        return revisions.popitem()[1]
    several = sorted(begin) or sorted(revisions)
    if several:
        raise SuiteError(f"{name!r} could be any of: {', '.join(several)}; write more of it")
    newest = ", ".join(one.reference for one in reversed(captures[-5:]))
    raise SuiteError(
        f"no capture is called {name!r}; give an id, a revision, {LATEST!r} or {PREVIOUS!r}. "
        f"The newest: {newest}"
    )


def promote(
    registry: Registry, name: str, *, points: Sequence[str] = (), note: str = ""
) -> Promoted:
    """Makes a capture the baseline of its points; what they had before stays in the registry.

    Args:
        registry: The registry.
        name: What `find_capture` understands, or `previous`: what the last promotion replaced.
        points: Ids of the points to promote, each of which may be cut short; none takes all.
        note: Why.

    Raises:
        SuiteError: No capture or point is called so, or the registry cannot be written.
    """
    if name == PREVIOUS:
        chosen = _previous(registry)
    else:
        capture = find_capture(registry.captures(), name)
        chosen = {point.point_id: capture.reference for point in capture.points}
    if points:
        chosen = {point_id: chosen[point_id] for point_id in _named(points, list(chosen))}
    promotion = registry.promote(chosen, note=note)
    log = registry.promotions()
    place = next(index for index, one in enumerate(log) if one.id == promotion.id)
    before = state_after(log[:place])
    later = [one for one in log[place + 1 :] if one.points.keys() & chosen.keys()]
    return Promoted(
        promotion=promotion,
        replaced={point_id: before.get(point_id) for point_id in chosen},
        overtaken=later[-1] if later else None,
    )


def _previous(registry: Registry) -> dict[str, str | None]:
    """Returns what the points of the last promotion had before it."""
    log = registry.promotions()
    if not log:
        raise SuiteError("nothing was promoted yet, so there is no previous baseline")
    before = state_after(log[:-1])
    return {point_id: before.get(point_id) for point_id in log[-1].points}


def _named(points: Sequence[str], known: Sequence[str]) -> list[str]:
    found = []
    for given in points:
        matching = [point_id for point_id in known if point_id.startswith(given)]
        if len(matching) != 1:
            problem = "is not one" if not matching else "could be several"
            raise SuiteError(f"--point: {given!r} {problem} of its points: {', '.join(known)}")
        found += matching
    return found
