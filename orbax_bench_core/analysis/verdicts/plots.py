"""Drawings of verdicts: ratios of a point, blocks and times of an operation."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeGuard

from orbax_bench_core.analysis.verdicts import words
from orbax_bench_core.analysis.verdicts.headlines import primary_first
from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict
from orbax_bench_core.analysis.verdicts.words import seconds_of
from orbax_bench_core.config import ARMS, PER_ARM, Arm, GateConfig, GateRule
from orbax_bench_core.document import Scale, figures
from orbax_bench_core.gate import SeriesHealth, Verdict, Word
from orbax_bench_core.sweep import PairDesign

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

COLOURS: Final[dict[Word, str]] = {
    "REGRESSION": figures.REGRESSION,
    "PASS": figures.PASS,
    "INCONCLUSIVE": figures.INCONCLUSIVE,
}
_MARKERS: Final[dict[Word, str]] = {"REGRESSION": "D", "PASS": "o", "INCONCLUSIVE": "s"}
_ZONES: Final = {
    "within tolerance": figures.PASS,
    "between": figures.INCONCLUSIVE,
    "margin or more": figures.REGRESSION,
}
_FAINT: Final = 0.12


WIDEST: Final = 20.0
"""Ratio at which an axis ends, whatever would lie beyond."""

_STEPS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_FEW: Final = 6


def draw_intervals(axes: Axes, point: PointVerdict, gate: GateConfig) -> None:
    """Draws the interval of every operation of a point on one axis.

    Each row is shaded up to its tolerance, and from its margin on.
    """
    operations = primary_first(point)
    verdicts = [operation.verdict for operation in operations]
    bounds = [_bounds(operation, gate.rule(operation.operation)) for operation in operations]
    ends = [value for verdict in verdicts for value in (verdict.ratio, verdict.low, verdict.high)]
    limits = ratio_limits(
        [value for value in ends if value is not None], max(margin for _, margin in bounds)
    )
    axes.set_xscale("log")
    for row, (verdict, bound) in enumerate(zip(verdicts, bounds, strict=True)):
        _shade_row(axes, row, bound, limits[1])
        _draw_interval(axes, row, verdict, faint=not operations[row].primary, limits=limits)
    axes.axvline(1, color=figures.DIM, linewidth=1)
    axes.set_xlim(*limits)
    axes.set_ylim(len(operations) - 0.5, -0.5)
    axes.set_yticks(range(len(operations)), [_row_label(operation) for operation in operations])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    ratio_axis(axes.xaxis, *limits)
    axes.yaxis.grid(visible=False)
    axes.set_xlabel("candidate / baseline, 95 % interval")
    for zone, colour in _ZONES.items():
        axes.fill_betweenx([], [], color=colour, alpha=2 * _FAINT, linewidth=0, label=zone)
    figure = axes.figure
    figure.legend(loc="outside lower center", ncols=len(_ZONES))


def draw_blocks(axes: Axes, operation: OperationVerdict, rule: GateRule) -> None:
    """Draws the ratio of every block in the order measured, with the estimate and its interval."""
    from matplotlib.ticker import MaxNLocator

    ratios = [_exp(value) for value in operation.block_log_ratios]
    verdict = operation.verdict
    tolerance, margin = _bounds(operation, rule)
    limits = ratio_limits(
        [*ratios, *(value for value in (verdict.low, verdict.high) if value is not None)], margin
    )
    colour = COLOURS[verdict.time_word or verdict.word]
    axes.set_yscale("log")
    blocks = range(1, len(ratios) + 1)
    shown = [(block, ratio) for block, ratio in zip(blocks, ratios, strict=True) if is_real(ratio)]
    low, high = words.ends(verdict)
    if low is not None and high is not None and low < high:
        low, high = _clipped(low, limits), _clipped(high, limits)
        axes.axhspan(low, high, color=colour, alpha=_FAINT, linewidth=0, label="95 % interval")
    if is_real(verdict.ratio):
        axes.axhline(verdict.ratio, color=colour, linewidth=1.6, label="estimate")
    axes.axhline(1, color=figures.DIM, linewidth=1)
    floor = seconds_of(rule.min_effect_s)
    for name, given, bound, dashes in (
        ("tolerance", rule.tolerance, tolerance, (1, 2)),
        ("margin", rule.margin, margin, (5, 3)),
    ):
        axes.axhline(
            1 + bound,
            color=figures.DIM,
            linewidth=1,
            linestyle=(0, dashes),
            label=f"{name} {words.share(given) if bound == given else floor}",
        )
    axes.plot(
        [block for block, _ in shown],
        [ratio for _, ratio in shown],
        "o",
        color=figures.INK,
        markersize=4,
        label="block",
    )
    axes.set_xlim(0.3, max(len(ratios), 2) + 0.7)
    axes.set_ylim(*limits)
    ratio_axis(axes.yaxis, *limits)
    axes.xaxis.grid(visible=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.set_xlabel("block, in the order measured")
    axes.set_title(f"{figures.label(operation.operation)}: candidate / baseline per block")
    legend(axes, 3)


def _bounds(operation: OperationVerdict, rule: GateRule) -> tuple[float, float]:
    """Returns tolerance and margin as shares of the baseline's median, floors of seconds in it."""
    times = [value for value in operation.times.get("baseline", ()) if is_real(value)]
    least = rule.min_effect_s / statistics.median(times) if times else 0.0
    return max(rule.tolerance, least), max(rule.margin, least)


def _shade_row(axes: Axes, row: int, bounds: tuple[float, float], high: float) -> None:
    top, bottom = row - 0.5, row + 0.5
    tolerance, margin = bounds
    ends = (1 / WIDEST, 1 + tolerance, 1 + margin, 2 * max(high, 1 + margin))
    for (start, end), colour in zip(itertools.pairwise(ends), _ZONES.values(), strict=True):
        axes.fill_betweenx([top, bottom], start, end, color=colour, alpha=_FAINT, linewidth=0)


def _draw_interval(
    axes: Axes, row: int, verdict: Verdict, *, faint: bool, limits: tuple[float, float]
) -> None:
    """Draws one interval; an end that lies outside of the axis is an arrow."""
    if verdict.ratio is None or not is_real(verdict.ratio):
        axes.text(1, row, "  not judged", color=figures.DIM, va="center", style="italic")
        return
    # The interval is one of the time, whatever stalls say.
    word = verdict.time_word or verdict.word
    colour = COLOURS[word]
    low, high = words.ends(verdict)
    low, high = verdict.ratio if low is None else low, verdict.ratio if high is None else high
    ends = (_clipped(low, limits), _clipped(high, limits))
    width = 1.2 if faint else 2.2
    axes.plot(ends, (row, row), color=colour, linewidth=width, solid_capstyle="butt")
    for end, given, arrow in ((ends[0], low, "<"), (ends[1], high, ">")):
        marker = "|" if end == given else arrow
        axes.plot(end, row, marker, color=colour, markersize=6, clip_on=False)
    axes.plot(
        _clipped(verdict.ratio, limits),
        row,
        _MARKERS[word],
        color=colour,
        markerfacecolor="none" if faint else colour,
        markersize=6,
    )


def _row_label(operation: OperationVerdict) -> str:
    name = figures.label(operation.operation, 28)
    verdict = operation.verdict
    mark = words.MARKS[verdict.word]
    stalls = " stalls" if verdict.word != "PASS" and verdict.endpoint == "stalls" else ""
    return f"{name if operation.primary else f'({name})'} {mark}{stalls}"


def legend(axes: Axes, columns: int) -> None:
    """Puts the legend below the axes, where no data can be."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=columns)


def _clipped(value: float, limits: tuple[float, float]) -> float:
    return min(max(value, limits[0]), limits[1])


def is_real(value: float | None) -> TypeGuard[float]:
    """Returns whether a value has a place on an axis of ratios or times."""
    return value is not None and math.isfinite(value) and value > 0


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def ratio_limits(values: Iterable[float], margin: float) -> tuple[float, float]:
    """Returns the ends of an axis that shows all ratios, no change and the margin, such as 0.15.

    Ratios that are not finite or not positive are left out.
    """
    shown = [value for value in values if math.isfinite(value) and value > 0]
    low, high = min([*shown, 1 / (1 + margin)]), max([*shown, 1 + margin])
    room = 0.06 * math.log(high / low)
    return (
        max(low * math.exp(-room), 1 / WIDEST),
        min(high * math.exp(room), WIDEST),
    )


def ratio_axis(axis: Axis, low: float, high: float) -> None:
    """Makes an axis of a log scale one of ratios, such as 0.9x, 1x and 1.1x."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    ticks = _ticks(low, high)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([f"{tick:g}x" for tick in ticks]))
    axis.set_minor_locator(NullLocator())
    axis.grid(visible=True, color=figures.LINE, linewidth=0.5)


def _ticks(low: float, high: float) -> list[float]:
    """Returns a few round ratios between two ends."""
    if high / low > 4:
        powers = [2.0**power for power in range(-5, 6)]
        return [tick for tick in powers if low <= tick <= high]
    for step in _STEPS:
        first, last = math.ceil(low / step), math.floor(high / step)
        if last - first < _FEW:
            return [round(index * step, 10) for index in range(first, last + 1) if index]
    return [1.0]


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
    """Returns from how many seconds on an operation is a stall; None if nobody looked."""
    times = [value for values in operation.times.values() for value in values if is_real(value)]
    found = operation.verdict.stalls
    return None if found is None or not times else found.threshold * statistics.median(times)


def _places(count: int, failed: Sequence[int]) -> list[int]:
    """Returns the places, from 1, of what passed among all attempts of an arm."""
    taken = set(failed)
    return [index + 1 for index in range(count + len(taken)) if index not in taken][:count]


def _lives(places: Sequence[int], design: PairDesign | None) -> list[int] | None:
    """Returns the number of the life of each place; None if there were no lives.

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
