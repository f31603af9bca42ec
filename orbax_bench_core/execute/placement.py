"""Which points can share a warm worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orbax_bench_core.config.arms import ARMS
from orbax_bench_core.config.execution import EnvironmentConfig
from orbax_bench_core.sweep.point import SweepPoint

Placement = tuple[int, int, str]


def placement(point: SweepPoint) -> Placement:
    """Returns what a point needs of its workers: devices, processes, name of the environment.

    Args:
        point: A point, or one side of a pair.
    """
    environment = "" if point.environment is None else point.environment.name
    return (point.num_devices or point.processes, point.processes, environment)


def sides(points: Iterable[SweepPoint]) -> Iterator[SweepPoint]:
    """Yields what is measured: both sides of each pair, and every other point itself."""
    for point in points:
        yield from (point.side(arm) for arm in ((None,) if point.candidate is None else ARMS))


def environments(points: Iterable[SweepPoint]) -> list[EnvironmentConfig]:
    """Returns the environments that `points` name, each once."""
    named = (side.environment for side in sides(points))
    return list({one.name: one for one in named if one is not None}.values())
