"""Figure of one series of past runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.analysis.history import words
from orbax_bench_core.analysis.history.model import Series
from orbax_bench_core.analysis.verdicts import ratio_axis, ratio_limits
from orbax_bench_core.document import Scale, figures, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH: Final = 9.6
_HEIGHT: Final = 3.0
_FEW_TICKS: Final = 7
_LEAST: Final = 0.05
"""Least relative room that an axis of ratios shows on each side, lest noise look like mountains."""


def series_figure(series: Series) -> Figure:
    """Returns the drawing of a series."""
    figure = figures.new_figure(_WIDTH, _HEIGHT)
    draw_series(figure.subplots(), series)
    return figure


def draw_series(axes: Axes, series: Series) -> None:
    """Draws every run with its interval, or quartiles of seconds, and where the level changes."""
    runs = series.runs
    places = range(len(runs))
    values = [run.value for run in runs]
    every = [end for run in runs for end in (run.low, run.value, run.high) if end is not None]
    limits = ratio_limits(every, _LEAST)
    # Where an end is open, its line goes on to that of the axis.
    below = [max(run.value - (run.low or limits[0]), 0) for run in runs]
    above = [max((run.high or limits[1]) - run.value, 0) for run in runs]
    axes.errorbar(
        places,
        values,
        yerr=[below, above],
        fmt="o",
        color=figures.CANDIDATE,
        ecolor=figures.LINE,
        elinewidth=1.4,
    )
    if series.kind == "ratio":
        axes.set_yscale("log")
        _draw_parts(axes, series)
        axes.set_ylim(*limits)
        ratio_axis(axes.yaxis, *limits)
        axes.xaxis.grid(visible=False)
        axes.set_ylabel("candidate / baseline")
    else:
        _seconds_axis(axes, values)
    axes.set_xlim(-0.7, max(len(runs), 2) - 0.3)
    step = max(1, -(-len(runs) // _FEW_TICKS))
    ticks = list(places)[::step]
    axes.set_xticks(ticks, [words.day(runs[tick].began_at) for tick in ticks])


def _draw_parts(axes: Axes, series: Series) -> None:
    axes.axhline(1, color=figures.DIM, linewidth=1)
    start = 0
    for part in series.parts:
        level, end = statistics.median(run.value for run in part), start + len(part)
        axes.plot([start - 0.5, end - 0.5], [level, level], color=figures.INK, linewidth=1.4)
        start = end
    for change in series.changes:
        slower = change.effect > 0
        colour = figures.REGRESSION if slower else figures.PASS
        place = change.index - 0.5
        axes.axvline(place, color=colour, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.annotate(
            f"{100 * change.effect:+.3g} %",
            (place, 1),
            xycoords=("data", "axes fraction"),
            xytext=(4, -9),
            textcoords="offset points",
            color=colour,
            fontsize=8.5,
        )


def _seconds_axis(axes: Axes, values: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: seconds(float(value))))
    axes.yaxis.grid(visible=True, color=figures.LINE, linewidth=0.5)
    # One run far out, which is then beyond the axis, does not flatten the others.
    axes.set_ylim(0, 1.15 * Scale.of([values]).high)
