"""Schedule of a sweep: the order of its repeats, and the environments that it needs."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from orbax_bench_core.config import EnvironmentConfig, ExecutionConfig
from orbax_bench_core.sweep import Placement, SweepEntry, SweepPoint, placement, sides

Slot = tuple[SweepPoint, int]


def schedule(
    points: Sequence[SweepPoint], num_repeats: int, execution: ExecutionConfig
) -> list[Slot]:
    """Returns every repeat of every point in the order in which to run them.

    Interleaved rounds spread drift of the machine evenly over the points: a machine that slows
    down during a sweep would otherwise look like the fault of the points that come last.
    """
    if execution.order == "sequential":
        return [(point, repeat) for point in points for repeat in range(num_repeats)]
    return [
        (point, repeat)
        for repeat in range(num_repeats)
        for point in _shuffled(points, random.Random(f"{execution.seed}:{repeat}"))
    ]


def _shuffled(points: Sequence[SweepPoint], generator: random.Random) -> list[SweepPoint]:
    """Shuffles groups, and points within a group, so that each worker is visited once a round."""
    groups: dict[Placement, list[SweepPoint]] = {}
    for point in points:
        groups.setdefault(placement(point), []).append(point)
    order = list(groups)
    generator.shuffle(order)
    shuffled = []
    for key in order:
        generator.shuffle(groups[key])
        shuffled += groups[key]
    return shuffled


def environments(entries: Iterable[SweepEntry]) -> list[EnvironmentConfig]:
    """Returns the environments that points or pairs name, each once."""
    named = (point.environment for entry in entries for point in sides(entry).values())
    return list(
        {environment.name: environment for environment in named if environment is not None}.values()
    )
