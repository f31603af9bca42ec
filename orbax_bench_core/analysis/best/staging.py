"""Staging budget: from which limit of data in flight on a save blocks training for longer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orbax_bench_core.analysis.best.goals import BLOCKING
from orbax_bench_core.analysis.best.observations import Observed
from orbax_bench_core.analysis.best.ranking import ratio_of
from orbax_bench_core.analysis.best.words import interval

BUDGETS: Final = ("device_host_concurrent_gb", "save_concurrent_gb")
"""Options that bound the data in flight of a save."""

_LONGER: Final = 1.05
"""A budget blocks when all of the interval of its ratio is above this."""


def staging_lines(
    points: Sequence[Observed], varied: Mapping[str, Sequence[Any]]
) -> tuple[str, ...]:
    """Returns from which budget on saves block training for longer, a line per option.

    Each budget is compared with no limit: geometric mean of the blocking times of all points that
    have it, paired by round. On CPUs nothing is staged from a device, so that nothing is fitted.
    """
    lines = []
    for option in BUDGETS:
        budgets = [value for value in varied.get(option, ()) if value is not None]
        if not budgets:
            continue
        if any(point.platform in ("cpu", "") for point in points):
            platform = "on CPU" if points[0].platform == "cpu" else "where the devices are unknown"
            lines.append(f"{option}: where blocking begins is not applicable {platform}")
        elif None not in varied[option]:
            lines.append(
                f"{option}: where blocking begins is unknown: no point has no limit (null)"
            )
        else:
            lines.append(_cliff(points, option, sorted(budgets)))
    return tuple(lines)


def _cliff(points: Sequence[Observed], option: str, budgets: Sequence[float]) -> str:
    free = _blocking(points, option, None)
    longer: list[tuple[float, str]] = []
    as_free: list[float] = []
    for budget in budgets:
        found = ratio_of(_blocking(points, option, budget), free)
        if found.ratio is None or found.low is None:
            return f"{option}: where blocking begins is unknown: that takes two rounds or more"
        if found.low > _LONGER:
            longer.append((budget, interval(found.ratio, found.low, found.high)))
        else:
            as_free.append(budget)
    if not longer:
        return f"{option}: no budget down to {budgets[0]:g} GiB blocks longer than no limit"
    largest, ratio = longer[-1]
    above = [budget for budget in as_free if budget > largest]
    to = f"and {above[0]:g} GiB" if above else "GiB and no limit"
    return f"{option}: blocking begins between {largest:g} {to}; at {largest:g} GiB it is {ratio}"


def _blocking(points: Sequence[Observed], option: str, budget: float | None) -> dict[int, float]:
    """Returns the geometric mean of the blocking times of the points with a budget, by round."""
    own = [
        point.values.get(BLOCKING, {})
        for point in points
        if point.point.options.get(option) == budget
    ]
    rounds = set.intersection(*(set(each) for each in own)) if own else set()
    return {
        at: math.exp(sum(math.log(each[at]) for each in own) / len(own)) for at in sorted(rounds)
    }
