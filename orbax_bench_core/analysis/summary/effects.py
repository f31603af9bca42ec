"""Effects of the options of each point: what is proven over its repeats, and tables of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from orbax_bench_core import pages
from orbax_bench_core.errors import listed
from orbax_bench_core.records import Effect, OptionEffect

if TYPE_CHECKING:
    from orbax_bench_core.analysis.summary.model import PointStatus

_WORST_FIRST: Final[tuple[Effect, ...]] = ("not in effect", "in effect", "not proved")
_NOTHING: Final[Effect] = "not in effect"


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


def effects_table(points: Iterable[PointStatus]) -> pages.Table:
    """Returns each option and state once, with the points that have it and one proof.

    Options that do nothing come first.
    """
    known = [point for point in points if point.effects]
    found: dict[tuple[str, Effect], list[tuple[str, OptionEffect]]] = {}
    for point in known:
        for effect in point.effects:
            found.setdefault((effect.option, effect.state), []).append((point.point, effect))
    rows = []
    for (option, state), having in sorted(found.items(), key=lambda one: one[0][1] != _NOTHING):
        asked = ", ".join(dict.fromkeys(json.dumps(effect.asked) for _, effect in having))
        role: pages.Role = "bad" if state == _NOTHING else "plain"
        names = "all" if len(having) == len(known) else listed(name for name, _ in having)
        cells = (option, asked, pages.Cell(state, role), names, having[0][1].proof)
        rows.append(pages.Row(cells, dim=state == "not proved"))
    columns = pages.columns("option`", "asked`", "state", "points~", "proof~")
    return pages.Table(columns, tuple(rows))
