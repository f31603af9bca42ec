"""Drawings of ratios: intervals of a point, blocks of an operation, and their axis."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeGuard

from orbax_bench_core.analysis.verdicts import words
from orbax_bench_core.analysis.verdicts.findings import seconds_of
from orbax_bench_core.analysis.verdicts.headlines import primary_first
from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict
from orbax_bench_core.config import GateConfig, GateRule
from orbax_bench_core.document import figures
from orbax_bench_core.gate import Verdict, Word

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
