"""Figures of a choice: the Pareto front, and the effects of the options with their intervals."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from orbax_bench_core.analysis.best import words
from orbax_bench_core.analysis.best.model import Case, Goal
from orbax_bench_core.document import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH: Final = 9.6
_HEIGHT: Final = 3.6
_ROW: Final = 0.3
MOST_EFFECTS: Final = 20
_MOST_NAMES: Final = 8


def front_figure(case: Case) -> Figure:
    """Returns the points by time of save and load; those on the front are filled and named."""
    figure = figures.new_figure(_WIDTH, _HEIGHT)
    axes = figure.subplots()
    chosen = None if case.recommendation is None else case.recommendation.point_id
    first, second = case.front_of[:2]
    shown = [point for point in case.points if first in point.medians and second in point.medians]
    apart = {chosen, *case.front}
    behind = [point for point in shown if point.point_id not in apart]
    axes.plot(  # thousands of points are one drawing, and not one each
        [point.medians[first] for point in behind],
        [point.medians[second] for point in behind],
        "o",
        color=figures.BAR,
        markerfacecolor=figures.PAGE,
    )
    for point in shown:
        if point.point_id not in apart:
            continue
        on_front = point.point_id in case.front
        axes.plot(
            [point.medians[first]],
            [point.medians[second]],
            "D" if point.point_id == chosen else "o",
            color=figures.PASS if point.point_id == chosen else figures.BAR,
            markerfacecolor=None if on_front else figures.PAGE,
        )
    for axis, goal in ((axes.xaxis, first), (axes.yaxis, second)):
        write = functools.partial(words.value, Goal(text=goal, weights={goal: 1.0}))
        figures.log_axis(axis, [point.medians[goal] for point in shown], write)
        axis.set_label_text(f"{goal}, median")
    named = [point for point in shown if point.point_id in case.front]
    if len(named) <= _MOST_NAMES:
        figures.name_marks(
            axes,
            {
                (point.medians[first], point.medians[second]): figures.label(
                    words.options(point), 60
                )
                for point in named
            },
            [(point.medians[first], point.medians[second]) for point in shown],
        )
    return figure


def effects_figure(case: Case) -> Figure:
    """Returns main effects as ratios with their intervals, on a log scale; 1 is no effect."""
    shown = case.effects.main[:MOST_EFFECTS]
    figure = figures.new_figure(_WIDTH, 1.0 + _ROW * len(shown))
    axes = figure.subplots()
    for row, contrast in enumerate(reversed(shown)):
        colour = figures.DIM
        if contrast.matters:
            colour = figures.PASS if contrast.ratio < 1 else figures.REGRESSION
        axes.plot([contrast.low, contrast.high], [row, row], color=colour, linewidth=1.6)
        axes.plot([contrast.ratio], [row], "o", color=colour)
    axes.axvline(1, color=figures.DIM, linewidth=1)
    ends = [value for contrast in shown for value in (contrast.low, contrast.high)]
    figures.log_axis(axes.xaxis, [1.0, *ends], lambda ratio: f"{ratio:g}x")
    axes.set_yticks(
        range(len(shown)),
        [
            figures.label(
                f"{words.option(c.options[0], c.values[0])} / {json_of(c.against[0])}", 60
            )
            for c in reversed(shown)
        ],
    )
    axes.set_xlabel(f"factor on {case.effects.goal.text}")
    return figure


def json_of(setting: object) -> str:
    """Returns the value of an option alone."""
    return words.option("", setting).removeprefix("=")
