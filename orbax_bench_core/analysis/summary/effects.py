"""Effects of the options of each point: what is proven over its repeats, and tables of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.document import Column, Details, Element, Group, Only, Role, Row, Span, Table
from orbax_bench_core.records import Effect, OptionEffect

if TYPE_CHECKING:
    from orbax_bench_core.analysis.summary.model import PointStatus

_WORST_FIRST: Final[tuple[Effect, ...]] = ("not in effect", "in effect", "not proved")
_FEW: Final = 20
"""Points up to which HTML has a table for each."""

_COLUMNS: Final = (
    Column("option"),
    Column("asked"),
    Column("state", "fixed"),
    Column("proof", "prose"),
)


def strongest_effects(effects: Iterable[OptionEffect]) -> tuple[OptionEffect, ...]:
    """Returns one effect per option: one proof is enough, that an option does nothing first."""
    found: dict[str, OptionEffect] = {}
    for effect in effects:
        known = found.setdefault(effect.option, effect)
        if _WORST_FIRST.index(effect.state) < _WORST_FIRST.index(known.state):
            found[effect.option] = effect
    return tuple(found.values())


def effects_line(points: Iterable[PointStatus]) -> str:
    """Returns how many options are in effect, and which are not; empty without any."""
    having: Counter[str] = Counter()
    names: dict[Effect, Counter[str]] = {state: Counter() for state in ("in effect", *_WORST_FIRST)}
    for point in points:
        having.update(effect.option for effect in point.effects)
        for effect in point.effects:
            names[effect.state][effect.option] += 1
    # An option may be proven in some points only: it is then named with both counts.
    counted = [
        f"{len(found)} {state}"
        + ("" if state == "in effect" else f" ({', '.join(_with_points(found, having))})")
        for state, found in names.items()
        if found
    ]
    return f"Options: {', '.join(counted)}." if counted else ""


def _with_points(found: Mapping[str, int], having: Mapping[str, int]) -> Iterable[str]:
    for name, points in found.items():
        total = having[name]
        yield name if points == total else f"{name} in {points} of {total} points"


def effects_elements(points: Iterable[PointStatus]) -> tuple[Element, ...]:
    """Returns a table per point that HTML folds, and one of all points for Markdown."""
    known = [point for point in points if point.effects]
    if not known:
        return ()
    folded = (
        _of_many(known)
        if len(known) > _FEW
        else tuple(
            Details(
                (Span(point.point), " ", Span(_counts(point.effects), "dim")),
                (Table(_COLUMNS, tuple(map(_row, point.effects))),),
                open=any(effect.state == "not in effect" for effect in point.effects),
            )
            for point in known
        )
    )
    groups = tuple(
        Group(
            label=Span(point.point),
            keys=(Span(point.point), Span(point.point_id)),
            rows=tuple(map(_row, point.effects)),
        )
        for point in known
    )
    return (
        Only("html", folded),
        Only("markdown", (Table(_COLUMNS, groups=groups, keys=("point", "id")),)),
    )


def _of_many(points: Sequence[PointStatus]) -> tuple[Element, ...]:
    """Returns each option and state once, with the points that have it, and one proof."""
    found: dict[tuple[str, Effect], list[OptionEffect]] = {}
    for point in points:
        for effect in point.effects:
            found.setdefault((effect.option, effect.state), []).append(effect)
    rows = []
    for (option, state), effects in found.items():
        asked = ", ".join(dict.fromkeys(json.dumps(effect.asked) for effect in effects))
        role: Role = "bad" if state == "not in effect" else "plain"
        rows.append(
            Row(
                (
                    Span(option, code=True),
                    Span(asked, code=True),
                    (Span(state, role), f" in {len(effects)} of {len(points)}"),
                    Span(effects[0].proof),
                ),
                dim=state == "not proved",
            )
        )
    return (Table(_COLUMNS, tuple(rows), sorts=True),)


def _counts(effects: Sequence[OptionEffect]) -> str:
    states = [effect.state for effect in effects]
    return ", ".join(
        f"{states.count(state)} {state}" for state in _WORST_FIRST if states.count(state)
    )


def _row(effect: OptionEffect) -> Row:
    role: Role = "bad" if effect.state == "not in effect" else "plain"
    return Row(
        (
            Span(effect.option, code=True),
            Span(json.dumps(effect.asked), code=True),
            Span(effect.state, role),
            Span(effect.proof),
        ),
        dim=effect.state == "not proved",
    )
