"""Drawing of a series: times of both arms in order, with stalls, failures and slow states."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict
from orbax_bench_core.analysis.verdicts.plots import is_real, legend
from orbax_bench_core.config import ARMS, PER_ARM, Arm
from orbax_bench_core.document import Scale, figures
from orbax_bench_core.gate import SeriesHealth
from orbax_bench_core.sweep import PairDesign

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ARM_COLOURS: Final[dict[Arm, str]] = {
    "baseline": figures.BASELINE,
    "candidate": figures.CANDIDATE,
}

_ARM_MARKERS: Final[dict[Arm, str]] = {"baseline": "o", "candidate": "s"}

_FAR: Final = 2.0
"""Ratio of the largest time to the usual ones from which on an axis leaves it out."""


def draw_series(axes: Axes, point: PointVerdict, operation: OperationVerdict) -> None:
    """Draws the times of both arms in the order measured, with what their health says.

    A line shows a drift that is flagged by its size, hollow marks the slow one of two regimes.
    Rings are stalls, above a dotted line, and crosses on the axis attempts that failed. Where slots
    were lives, a line joins the operations of each.
    """
    from matplotlib.ticker import MaxNLocator

    factor, unit = _unit([value for times in operation.times.values() for value in times])
    above = _stalled_above(operation)
    longest = 2
    for arm in ARMS:
        times = [value * factor for value in operation.times.get(arm, ())]
        failed = point.failed_at.get(arm, ())
        longest = max(longest, len(times) + len(failed))
        places = _places(len(times), failed)
        if times:
            lives = _lives(places, point.design)
            _draw_arm(axes, arm, places, times, operation.health.get(arm), lives)
        if above is not None:
            stalled = [
                (place, value)
                for place, value in zip(places, times, strict=True)
                if value > above * factor
            ]
            _draw_stalls(axes, arm, stalled)
        _draw_failed(axes, arm, failed)
    _name_marks(axes)
    rows = [
        [value * factor for value in times if is_real(value)] for times in operation.times.values()
    ]
    top = 1.08 * _top(rows)
    _draw_beyond(axes, point, operation, top)
    if above is not None and above * factor < top:
        axes.axhline(above * factor, color=figures.DIM, linewidth=1, linestyle=(0, (1, 2)))
    axes.set_ylabel(unit)
    axes.set_xlim(0.3, longest + 0.7)
    axes.set_ylim(0, top)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6))
    axes.yaxis.grid(visible=True, color=figures.LINE, linewidth=0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.set_xlabel("operation of the arm, in the order measured")
    axes.set_title(f"{figures.label(operation.operation)}: time of each operation")
    named = list(map(str, axes.get_legend_handles_labels()[1]))
    remarked = len(named) <= len(ARMS) and any(":" in name for name in named)
    legend(axes, 1 if remarked else 2)


def _top(rows: Sequence[Sequence[float]]) -> float:
    """Returns the largest value, or the largest that is no outlier where one is far above it."""
    largest = max((value for row in rows for value in row), default=1.0)
    usual = Scale.of(row for row in rows if row).high
    return largest if largest < _FAR * usual else usual


def _draw_beyond(axes: Axes, point: PointVerdict, operation: OperationVerdict, top: float) -> None:
    """Draws what lies beyond an axis at its end, with the value: it flattens nothing else."""
    factor, unit = _unit([value for times in operation.times.values() for value in times])
    for arm in ARMS:
        times = operation.times.get(arm, ())
        places = _places(len(times), point.failed_at.get(arm, ()))
        for place, value in zip(places, times, strict=True):
            if is_real(value) and value * factor > top:
                axes.plot([place], [0.97 * top], "^", color=_ARM_COLOURS[arm], clip_on=False)
                axes.annotate(
                    f"{value * factor:.3g} {unit}",
                    (place, 0.97 * top),
                    xytext=(5, -3),
                    textcoords="offset points",
                    fontsize=7.5,
                )


def _stalled_above(operation: OperationVerdict) -> float | None:
    """Returns from how many seconds on an operation is a stall; None where nobody looked."""
    times = [value for values in operation.times.values() for value in values if is_real(value)]
    found = operation.verdict.stalls
    return None if found is None or not times else found.of_all.threshold * statistics.median(times)


def _places(count: int, failed: Sequence[int]) -> list[int]:
    """Returns the places, from 1, of what passed among all attempts of an arm."""
    taken = set(failed)
    return [index + 1 for index in range(count + len(taken)) if index not in taken][:count]


def _lives(places: Sequence[int], design: PairDesign | None) -> list[int] | None:
    """Returns the number of the life of each place; None where there were no lives.

    A round goes once through the lives of an arm in a block.
    """
    if design is None or not design.lives:
        return None
    block = PER_ARM * design.operations_per_life
    return [(place - 1) // block * PER_ARM + (place - 1) % PER_ARM for place in places]


def _draw_stalls(axes: Axes, arm: Arm, stalled: Sequence[tuple[int, float]]) -> None:
    if stalled:
        axes.plot(
            [place for place, _ in stalled],
            [value for _, value in stalled],
            "o",
            color=_ARM_COLOURS[arm],
            markerfacecolor="none",
            markersize=11,
            label=f"_{arm}_stalled",
        )


def _draw_failed(axes: Axes, arm: Arm, failed: Sequence[int]) -> None:
    """Draws failed attempts as crosses on the axis of places, where no time can be."""
    if failed:
        axes.plot(
            [index + 1 for index in failed],
            [0.0 if arm == "baseline" else 0.035] * len(failed),
            "x",
            color=_ARM_COLOURS[arm],
            markersize=7,
            markeredgewidth=1.8,
            clip_on=False,
            transform=axes.get_xaxis_transform(),
            label=f"_{arm}_failed",
        )


def _name_marks(axes: Axes) -> None:
    """Puts rings and crosses into the legend, once for both arms."""
    drawn = {str(line.get_label()) for line in axes.get_lines()}
    for name, marker in (("stalled", "o"), ("failed", "x")):
        if any(label.endswith(f"_{name}") for label in drawn):
            axes.plot(
                [], [], marker, color=figures.DIM, markerfacecolor="none", markersize=7, label=name
            )


def _draw_arm(
    axes: Axes,
    arm: Arm,
    places: Sequence[int],
    times: Sequence[float],
    health: SeriesHealth | None,
    lives: Sequence[int] | None,
) -> None:
    colour, marker = _ARM_COLOURS[arm], _ARM_MARKERS[arm]
    remarks = []
    for life in [None] if lives is None else sorted(set(lives)):
        joined = [
            (place, value)
            for index, (place, value) in enumerate(zip(places, times, strict=True))
            if lives is None or lives[index] == life
        ]
        axes.plot(*zip(*joined, strict=True), color=colour, linewidth=0.8, alpha=0.5)
    if health is not None and health.drift is not None and health.drifts:
        remarks.append(f"drift {100 * health.drift:+.0f} %")
        middle = statistics.median(times)
        axes.plot(
            (places[0], places[-1]),
            (middle * (1 - health.drift / 2), middle * (1 + health.drift / 2)),
            color=colour,
            linewidth=1.6,
            linestyle=(0, (5, 3)),
        )
    slow: list[int] = []
    if health is not None and health.regimes:
        slow = _slow_ones(times)
        by = "" if health.regime_ratio is None else f", {health.regime_ratio:.2f}x apart"
        remarks.append(f"two regimes{by}")
    legend = f"{arm}: {', '.join(remarks)}" if remarks else arm
    axes.plot(places, times, marker, color=colour, label=legend)
    # A dot of the page's colour makes a mark hollow, whatever the page is.
    axes.plot(
        [places[index] for index in slow],
        [times[index] for index in slow],
        marker,
        color=figures.PAGE,
        markersize=2.2,
        markeredgewidth=0,
    )


def _slow_ones(times: Sequence[float]) -> list[int]:
    """Returns the indices of the values in the slow one of two regimes."""
    import numpy as np

    from orbax_bench_core.gate import find_regimes

    usable = [index for index, value in enumerate(times) if is_real(value)]
    found = find_regimes(np.log([times[index] for index in usable]))
    if found is None:
        return []
    return [index for index, slow in zip(usable, found.slow, strict=True) if slow]


def _unit(seconds: Sequence[float]) -> tuple[float, str]:
    """Returns a factor and the unit that it makes of seconds."""
    longest = max(filter(math.isfinite, seconds), default=1.0)
    if longest < 1e-3:
        return 1e6, "µs"
    return (1e3, "ms") if longest < 1 else (1.0, "s")
