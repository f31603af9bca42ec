"""Labels of points and pairs: the values that tell one from the others of its suite."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterator, Sequence
from typing import Any

from orbax_bench_core.sweep import catalog
from orbax_bench_core.sweep.pair import SweepEntry, sides
from orbax_bench_core.sweep.point import SweepPoint


class Labels:
    """Labels of the entries of a suite: the options that vary between the points of a benchmark."""

    def __init__(self, entries: Sequence[SweepEntry]) -> None:
        """Looks at all entries."""
        self._taken: dict[str, str] = {}
        points = [point for entry in entries for point in sides(entry).values()]
        given: dict[str, set[str]] = collections.defaultdict(set)
        for point in points:
            given[point.benchmark].update(point.given)
        values: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
        for point in points:
            for name in given[point.benchmark] & point.options.keys():
                values[point.benchmark, name].add(repr(point.options[name]))
        self._varying = {option for option, found in values.items() if len(found) > 1}
        self._host_memory_varies = len({point.conditions.host_memory for point in points}) > 1

    def of(self, entry: SweepEntry) -> str:
        """Returns the values that tell an entry from others, or else part of its id as well.

        Those that an arm overrides tell nothing.
        """
        point, *others = sides(entry).values()
        other = others[0] if others else point
        label = ",".join((*self._option_parts(point, other), *self._other_parts(point, other)))
        name = f"{catalog.short_name(point.benchmark)}[{label}"
        if self._taken.setdefault(name, entry.id) == entry.id:
            return label
        return ",".join(filter(None, (label, f"id={entry.id[:6]}")))

    def _option_parts(self, point: SweepPoint, other: SweepPoint) -> Iterator[str]:
        # What an entry leaves at its default does not tell it from others: they say what they give.
        # Of an option that only one of two benchmarks has, there is nothing to override.
        own = {
            name: value
            for name, value in self._telling_options(point)
            if other.options.get(name, value) == value
        }
        added = {
            name: value for name, value in self._telling_options(other) if name not in point.options
        }
        for name, value in {**own, **added}.items():
            yield f"{name}={value if isinstance(value, str) else json.dumps(value)}"

    def _telling_options(self, point: SweepPoint) -> Iterator[tuple[str, Any]]:
        """Yields the options that a point gives and that vary between points of its benchmark."""
        for name, value in point.options.items():
            if (point.benchmark, name) in self._varying and name in point.given:
                yield name, value

    def _other_parts(self, point: SweepPoint, other: SweepPoint) -> Iterator[str]:
        if point.mesh is not None and other.mesh == point.mesh:
            yield f"mesh={point.mesh.label}"
        if not point.checkpoint.is_empty:
            yield f"ckpt={point.checkpoint.label}"
        if point.checkpoint.random_seed:
            yield f"seed={point.checkpoint.random_seed}"
        if point.storage is not None and other.storage == point.storage:
            yield f"storage={point.storage}"
        if point.environment is not None and other.environment == point.environment:
            yield f"environment={point.environment.name}"
        if point.processes > 1 and other.processes == point.processes:
            yield f"processes={point.processes}"
        if point.conditions.cache == "cold":
            yield "cache=cold"
        if self._host_memory_varies:
            yield f"host_memory={point.conditions.host_memory}"
